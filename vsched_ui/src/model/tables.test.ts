// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import { matches, sorted } from './tables';

it('sorts names with numbers as people do', () => {
  const names = ['node10', 'node2', 'Node1'];
  expect(sorted(names, (name) => name, 'asc')).toEqual([
    'Node1',
    'node2',
    'node10',
  ]);
  expect(names[0]).toBe('node10');
});

it('has what is unknown at the end, whatever the direction', () => {
  const values = [null, 2, undefined, 1, NaN];
  expect(sorted(values, (value) => value, 'asc').slice(0, 2)).toEqual([1, 2]);
  expect(sorted(values, (value) => value, 'desc').slice(0, 2)).toEqual([2, 1]);
});

it('filters by all words', () => {
  expect(matches('vm-web node12 applied', 'NODE1 web')).toBe(true);
  expect(matches('vm-web node12 applied', 'node1 db')).toBe(false);
  expect(matches('anything', '')).toBe(true);
});
