// SPDX-License-Identifier: Apache-2.0

// What a user may read, by the policies that decide about it.

import type { PathOf } from '../api/routes';

/** The policy of each route that the page reads. */
export const POLICIES = {
  '/v1/balloons': 'vsched:balloons:list',
  '/v1/balloons/history': 'vsched:balloons:history',
  '/v1/events': 'vsched:events:list',
  '/v1/hosts': 'vsched:hosts:list',
  '/v1/hosts/{name}': 'vsched:hosts:show',
  '/v1/hosts/{name}/audit': 'vsched:hosts:audit',
  '/v1/hosts/{name}/profiles/error': 'vsched:profiles:show',
  '/v1/hosts/{name}/profiles/overhead': 'vsched:profiles:show_overhead',
  '/v1/instances': 'vsched:instances:list',
  '/v1/instances/{instance_uuid}': 'vsched:instances:show',
  '/v1/jobs': 'vsched:jobs:list',
  '/v1/reservations': 'vsched:reservations:list',
  '/v1/snapshot': 'vsched:snapshot:show',
  '/v1/usage': 'vsched:usage:list',
} as const satisfies Partial<Record<PathOf<'GET'>, string>>;

export type Readable = keyof typeof POLICIES;

/** The names of policies that allow reading. */
export interface Rights {
  /** Of all projects. */
  all: ReadonlySet<string>;
  /** Of the user's own project only. */
  own: ReadonlySet<string>;
}

/**
 * What a user may read.
 *
 * @param session - names the policies of both kinds.
 */
export function rightsOf(session: {
  allowed: readonly string[];
  allowed_in_project: readonly string[];
}): Rights {
  return {
    all: new Set(session.allowed),
    own: new Set(session.allowed_in_project),
  };
}

/** Whether a policy allows reading, of all projects or of the own at least. */
export function allows(rights: Rights, rule: string, whole: boolean): boolean {
  return rights.all.has(rule) || (!whole && rights.own.has(rule));
}

/** Whether a policy allows reading of the user's own project only. */
export function ownOnly(rights: Rights, rule: string): boolean {
  return !rights.all.has(rule) && rights.own.has(rule);
}

const TEMPLATES = (Object.keys(POLICIES) as Readable[]).map((path) => ({
  parts: path.split('/').slice(1),
  rule: POLICIES[path],
}));

/**
 * The policy of a path, null for those of which it is not known.
 *
 * @param path - of a request, without the slash at its beginning.
 */
export function policyOf(path: string): string | null {
  const parts = path.split('/');
  const found = TEMPLATES.find(
    (one) =>
      one.parts.length === parts.length &&
      one.parts.every(
        (part, index) => part.startsWith('{') || part === parts[index],
      ),
  );
  return found?.rule ?? null;
}
