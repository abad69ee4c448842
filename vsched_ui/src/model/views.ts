// SPDX-License-Identifier: Apache-2.0

// Which view an address has.

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

const LISTS: readonly string[] = [
  'hosts',
  'reservations',
  'whatif',
  'balloons',
  'events',
  'jobs',
  'evidence',
] satisfies View[];

/**
 * The view at a path.
 *
 * @param path - below the root of the page.
 * @returns null when there is none.
 */
export function firstView(path: string): View | null {
  const [name, item, ...more] = path.split('/').filter((one) => one !== '');
  if (name === undefined) {
    return 'overview';
  }
  if (more.length > 0) {
    return null;
  }
  if (item !== undefined) {
    return name === 'hosts' ? 'host' : name === 'instances' ? 'instance' : null;
  }
  return LISTS.includes(name) ? (name as View) : null;
}
