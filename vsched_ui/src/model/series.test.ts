// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import type { HostSample, Sample } from '../api/types';
import * as series from './series';

const at = (second: number, ms = 0) =>
  new Date(Date.UTC(2027, 0, 15, 8, 0, second, ms)).toISOString();

const sample = (uuid: string, second: number, guest_us: number) =>
  ({
    instance_uuid: uuid,
    at: at(second, 20),
    interval_us: 1_000_000,
    guest_us,
  }) as Sample;

const host = (second: number, steal_us = 0) =>
  ({
    at: at(second, 30),
    interval_us: 1_000_000,
    direct_us: 100_000,
    shared_us: 50_000,
    own_us: 200_000,
    steal_us,
  }) as HostSample;

it('merges what is new, once, and drops what is old', () => {
  const known = [sample('a', 1, 1), sample('a', 2, 1)];
  const found = [sample('a', 2, 5), sample('b', 2, 1), sample('a', 3, 1)];
  const merged = series.merge(
    known,
    found,
    Date.parse(at(2)),
    (row) => row.instance_uuid,
  );
  expect(merged.map((row) => [row.instance_uuid, row.guest_us])).toEqual([
    ['a', 5],
    ['b', 1],
    ['a', 1],
  ]);
  expect(series.newest(merged)).toBe(at(3, 20));
  expect(series.newest([])).toBeNull();
});

it('shows missing samples as a gap', () => {
  expect(
    series.withGaps(
      [
        [0, 1],
        [1000, 2],
        [9000, 3],
      ],
      5000,
    ),
  ).toEqual([
    [0, 1],
    [1000, 2],
    [1001, null],
    [9000, 3],
  ]);
});

it('stacks instances and the host', () => {
  const found = series.stack(
    [host(1), host(2, 500_000)],
    [
      sample('small', 1, 100_000),
      sample('large', 1, 600_000),
      sample('large', 2, 700_000),
      sample('tiny', 2, 50_000),
      sample('large', 9, 700_000),
    ],
    1,
  );
  expect(found.times).toEqual([Date.parse(at(1)), Date.parse(at(2))]);
  expect(found.layers).toEqual([
    { key: 'large', values: [0.6, 0.7] },
    // What is missing for a second is as before.
    { key: series.OTHERS, values: [0.1, 0.15000000000000002] },
    { key: series.HOST_WORK, values: [0.15, 0.15] },
    { key: series.HOST_OWN, values: [0.2, 0.2] },
    { key: series.STEAL, values: [0, 0.5] },
  ]);
});

it('takes the mean of two samples in one second', () => {
  const found = series.stack(
    [host(1), host(1), host(2)],
    [sample('a', 1, 200_000), sample('a', 1, 400_000)],
    1,
  );
  expect(found.layers[0]?.key).toBe('a');
  expect(found.layers[0]?.values[0]).toBeCloseTo(0.3);
  expect(found.layers[1]?.values).toEqual([0.15, 0.15]);
});

it('does not hold what ended long ago', () => {
  const found = series.stack(
    [1, 2, 3, 4, 5].map((second) => host(second)),
    [sample('a', 1, 200_000), sample('b', 4, 100_000)],
    2,
  );
  expect(found.layers[0]?.values).toEqual([0.2, 0.2, 0.2, 0, 0]);
  expect(found.layers[1]?.values).toEqual([0, 0, 0, 0.1, 0.1]);
});
