// SPDX-License-Identifier: Apache-2.0

// Whose an instance is, and what it is called.

import { short } from './units';

/** What all answers about one instance have. */
export interface Identity {
  instance_uuid: string;
  /** The hypervisor's name; null for users who do not see hosts. */
  instance_name?: string | null;
  server_name: string | null;
  project_id: string | null;
  flavor_name: string | null;
}

/** An instance itself calls the hypervisor's name "name". */
export function identityOf<T extends Identity & { name: string | null }>(
  one: T,
): T & Identity {
  return { ...one, instance_name: one.name };
}

/** The name of the server, or else the hypervisor's; null without both. */
export function nameOf(one: Identity): string | null {
  return one.server_name ?? one.instance_name ?? null;
}

/** What to call an instance in a sentence. */
export function titleOf(one: Identity): string {
  return nameOf(one) ?? short(one.instance_uuid);
}

/** What a filter finds an instance by, whether columns show it or not. */
export function searchedOf(one: Identity): string {
  return [
    one.instance_uuid,
    one.instance_name,
    one.project_id,
    one.flavor_name,
  ]
    .filter((part) => part !== null && part !== undefined)
    .join(' ');
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The query for what is about one server.
 *
 * @param text - its UUID, or its name, which others may have as well; empty
 *   for all servers.
 */
export function serverQuery(
  text: string,
): { instance_uuid?: string } | { server_name?: string } {
  const found = text.trim();
  if (found === '') {
    return {};
  }
  return UUID.test(found)
    ? { instance_uuid: found.toLowerCase() }
    : { server_name: found };
}
