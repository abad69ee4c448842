// SPDX-License-Identifier: Apache-2.0

// The views of the page: their addresses, and what they need.

import { POLICIES, type Rights, allows } from './rights';

export type View =
  | 'overview'
  | 'hosts'
  | 'host'
  | 'instance'
  | 'reservations'
  | 'whatif'
  | 'balloons'
  | 'events'
  | 'jobs'
  | 'evidence';

/** What is known of a view before it is loaded. */
export interface Described {
  /** Its address below the root of the page; a colon begins a variable. */
  path: string;
  /** Its title in the menu; null for views of one thing. */
  title: string | null;
  /** The view of the menu that it belongs to. */
  within: View;
  /** The policies without which it has nothing to show. */
  needs: readonly string[];
  /** Whether it is of use with the instances of one project only. */
  own: boolean;
}

/** In the order of the menu. */
export const VIEWS: Readonly<Record<View, Described>> = {
  overview: {
    path: '/',
    title: 'Overview',
    within: 'overview',
    // That nothing is wrong is concluded from all of these.
    needs: [
      POLICIES['/v1/hosts'],
      POLICIES['/v1/reservations'],
      POLICIES['/v1/jobs'],
    ],
    own: false,
  },
  hosts: {
    path: '/hosts',
    title: 'Hosts',
    within: 'hosts',
    needs: [POLICIES['/v1/hosts']],
    own: false,
  },
  host: {
    path: '/hosts/:name',
    title: null,
    within: 'hosts',
    needs: [POLICIES['/v1/hosts/{name}']],
    own: false,
  },
  reservations: {
    path: '/reservations',
    title: 'Reservations',
    within: 'reservations',
    needs: [POLICIES['/v1/reservations']],
    own: true,
  },
  instance: {
    path: '/instances/:uuid',
    title: null,
    within: 'reservations',
    needs: [POLICIES['/v1/instances/{instance_uuid}']],
    own: true,
  },
  whatif: {
    path: '/whatif',
    title: 'What if',
    within: 'whatif',
    needs: ['vsched:evaluations:create'],
    own: false,
  },
  balloons: {
    path: '/balloons',
    title: 'Balloons',
    within: 'balloons',
    needs: [POLICIES['/v1/balloons']],
    own: true,
  },
  events: {
    path: '/events',
    title: 'Events',
    within: 'events',
    needs: [POLICIES['/v1/events']],
    own: false,
  },
  jobs: {
    path: '/jobs',
    title: 'Jobs',
    within: 'jobs',
    needs: [POLICIES['/v1/jobs']],
    own: false,
  },
  evidence: {
    path: '/evidence',
    title: 'Evidence',
    within: 'evidence',
    needs: [POLICIES['/v1/snapshot']],
    own: false,
  },
};

const ALL = Object.keys(VIEWS) as View[];

function segments(path: string): string[] {
  return path.split('/').filter((one) => one !== '');
}

/**
 * The view at a path.
 *
 * @param path - below the root of the page.
 * @returns null when there is none.
 */
export function viewAt(path: string): View | null {
  const asked = segments(path);
  return (
    ALL.find((view) => {
      const parts = segments(VIEWS[view].path);
      return (
        parts.length === asked.length &&
        parts.every(
          (part, index) => part.startsWith(':') || part === asked[index],
        )
      );
    }) ?? null
  );
}

/** The policies that keep a user from a view; none if it may be read. */
export function missing(view: View, rights: Rights): string[] {
  const { needs, own } = VIEWS[view];
  return needs.filter((rule) => !allows(rights, rule, !own));
}

/** An entry of the menu. */
export interface Entry {
  view: View;
  path: string;
  title: string;
}

/** The views that a user may read, without those of one thing. */
export function menuOf(rights: Rights): Entry[] {
  return ALL.flatMap((view) => {
    const { path, title } = VIEWS[view];
    return title === null || missing(view, rights).length > 0
      ? []
      : [{ view, path, title }];
  });
}
