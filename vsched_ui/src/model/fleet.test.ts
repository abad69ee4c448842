// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import type { Snapshot, SnapshotHost } from '../api/types';
import { isDown, updated } from './fleet';

const host = (name: string, admitted_mcpu: number) =>
  ({ name, admitted_mcpu }) as SnapshotHost;

const answer = (changes: Partial<Snapshot>) =>
  ({
    version: 1,
    full: false,
    more: false,
    down: [],
    removed: [],
    slowdowns: [],
    hosts: [],
    ...changes,
  }) as Snapshot;

it('adds changes to what is known', () => {
  const first = updated(
    null,
    answer({ full: true, hosts: [host('a', 1), host('b', 2), host('c', 3)] }),
  );
  const second = updated(
    first,
    answer({
      version: 2,
      hosts: [host('b', 20)],
      removed: ['c'],
      down: ['a'],
    }),
  );
  expect(second.version).toBe(2);
  expect([...second.hosts.keys()]).toEqual(['a', 'b']);
  expect(second.hosts.get('b')?.admitted_mcpu).toBe(20);
  expect(second.down).toEqual(new Set(['a']));
  // What a view still shows does not change below it.
  expect(first.hosts.get('b')?.admitted_mcpu).toBe(2);
});

it('forgets what a full answer does not have', () => {
  const first = updated(null, answer({ full: true, hosts: [host('a', 1)] }));
  const second = updated(first, answer({ full: true, hosts: [host('b', 1)] }));
  expect([...second.hosts.keys()]).toEqual(['b']);
});

it('knows from the newest answer which hosts are down', () => {
  const fleet = updated(null, answer({ full: true, down: ['a'] }));
  expect(isDown({ name: 'a', state: 'up' }, fleet)).toBe(true);
  expect(isDown({ name: 'b', state: 'down' }, fleet)).toBe(false);
  expect(isDown({ name: 'b', state: 'down' }, undefined)).toBe(true);
});
