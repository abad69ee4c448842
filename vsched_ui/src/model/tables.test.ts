// SPDX-License-Identifier: Apache-2.0

import { expect, it, vi } from 'vitest';

import { Finder, sorted } from './tables';

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
  const rows = [{ text: 'vm-web node12 applied' }, { text: 'vm-db node1' }];
  const finder = new Finder<{ text: string }>((row) => row.text);
  expect(finder.find(rows, 'NODE1 web')).toEqual([rows[0]]);
  expect(finder.find(rows, 'node1 none')).toEqual([]);
  expect(finder.find(rows, '')).toEqual(rows);
});

it('makes the text of a row once, as long as it is the same row', () => {
  const text = vi.fn((row: { text: string }) => row.text);
  const finder = new Finder(text);
  const rows = [{ text: 'one' }, { text: 'two' }];
  finder.find(rows, 'o');
  finder.find(rows, 'on');
  expect(text).toHaveBeenCalledTimes(2);
  const changed = { text: 'three' };
  expect(finder.find([...rows, changed], 'three')).toEqual([changed]);
  expect(text).toHaveBeenCalledTimes(3);
});
