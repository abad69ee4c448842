// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import {
  BENCHMARKS,
  type Benchmark,
  type Target,
  countOf,
  figure,
  newestRun,
  publishedRows,
} from './published';

const target = (changes: Partial<Target>): Target => ({
  metric: 'm',
  target: '≤ 2 %',
  unit: '%',
  source: 'issue 3',
  ours: 1.5,
  missed_by: 0,
  least: 1.5,
  most: 1.5,
  runs: 1,
  runs_met: 1,
  ...changes,
});

const benchmark = (changes: Partial<Benchmark>): Benchmark => ({
  name: 'some',
  title: 'Some title',
  run: {
    when: '2026-01-02T00:00:00Z',
    commit: 'c0ffee',
    dirty: false,
    machine: 'a machine',
    stolen_pct: null,
  },
  targets: [],
  ...changes,
});

it('has a row for each target, and one for a benchmark without any', () => {
  const rows = publishedRows([
    benchmark({
      targets: [
        target({}),
        target({ ours: 2.5, missed_by: 0.5 }),
        target({ ours: null, missed_by: null }),
      ],
    }),
    benchmark({ name: 'other' }),
  ]);
  expect(rows.map((row) => row.verdict)).toEqual([
    'met',
    'missed',
    'not measured',
    'no target',
  ]);
  expect(rows[3]?.target).toBeNull();
  expect(countOf(rows, 'missed')).toBe(1);
});

it('knows the newest run', () => {
  const found = benchmark({}).run;
  expect(
    newestRun([
      benchmark({ run: null }),
      benchmark({ run: { ...found!, when: '2026-01-03T00:00:00Z' } }),
      benchmark({}),
    ]),
  ).toBe('2026-01-03T00:00:00Z');
  expect(newestRun([benchmark({ run: null })])).toBeNull();
});

it('writes figures with their digits', () => {
  for (const [value, text] of [
    [0, '0'],
    [1.5, '1.5'],
    [0.0123, '0.0123'],
    [12_346, '12,346'],
    [-2.5, '−2.5'],
    [1.5e-7, '1.5e−7'],
  ] as const) {
    expect(figure(value)).toBe(text);
  }
});

it('has the records of the project', () => {
  const rows = publishedRows(BENCHMARKS);
  expect(rows.length).toBeGreaterThan(BENCHMARKS.length);
  expect(newestRun(BENCHMARKS)).not.toBeNull();
  for (const { benchmark: one, target: of } of rows) {
    expect(one.title).not.toBe('');
    // What was measured was measured by a run.
    expect(of?.ours === null || of === null || one.run !== null).toBe(true);
  }
});
