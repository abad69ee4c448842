// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import type { Event, Job, SnapshotHost } from '../api/types';
import {
  certificateRows,
  statusOfCertificates,
  firstByHost,
  ofBenchmark,
  priceRows,
  statusOfPrices,
} from './evidence';
import type { Fleet } from './fleet';

const CERTIFICATE = {
  backend: 'deadline',
  period_us: 10_000,
  shares_ppm: [100_000, 300_000, 500_000],
  lowers_ppm: [-9_000, -12_000, null],
};

const host = (changes: Partial<SnapshotHost>) =>
  ({
    name: 'a',
    facts: { policy: { confidence: 0.8 } },
    certificates: [],
    prices_ns: null,
    ...changes,
  }) as unknown as SnapshotHost;

const fleet = (...hosts: SnapshotHost[]): Fleet => ({
  version: 1,
  hosts: new Map(hosts.map((one) => [one.name, one])),
  down: new Set(),
});

const event = (at: string, figures = {}, detail = 'what happened') =>
  ({ host: 'a', at, figures, detail }) as Event;

const job = (created_at: string, updated_at: string) =>
  ({ host: 'a', created_at, updated_at }) as Job;

const NONE = new Map<string, never>();
const of = <T>(one: T) => new Map([['a', one]]);
const noHistory = { measured: NONE, withdrawn: NONE, granted: NONE };

it('keeps the first row of each host', () => {
  const rows = [
    { host: 'a', at: 2 },
    { host: 'b', at: 1 },
    { host: 'a', at: 0 },
  ];
  expect([...firstByHost(rows).values()].map((row) => row.at)).toEqual([2, 1]);
});

it('says why certificates are not in force', () => {
  const bare = host({});
  const withdrawn = of(event('2026-01-02T00:00:00Z', {}, 'it has 9 threads'));
  const measured = of(event('2026-01-01T00:00:00Z'));
  expect(
    statusOfCertificates(host({ certificates: [CERTIFICATE] }), {
      ...noHistory,
      withdrawn,
    }).state,
  ).toBe('in force');
  expect(
    statusOfCertificates(bare, { ...noHistory, measured, withdrawn }),
  ).toEqual({ state: 'withdrawn', why: 'it has 9 threads' });
  // They were granted again since, and something else has changed.
  expect(
    statusOfCertificates(bare, {
      measured,
      withdrawn,
      granted: of(event('2026-01-02T01:00:00Z')),
    }).state,
  ).toBe('out of date');
  expect(
    statusOfCertificates(bare, {
      ...noHistory,
      withdrawn,
      granted: of(event('2026-01-01T23:00:00Z')),
    }).state,
  ).toBe('withdrawn');
  expect(statusOfCertificates(bare, { ...noHistory, measured }).state).toBe(
    'out of date',
  );
  expect(statusOfCertificates(bare, noHistory).state).toBe('none known');
});

it('has a row for each certificate, with its worst bound', () => {
  const measured = of(
    event('2026-01-01T01:00:00Z', {
      finished_at: Date.parse('2026-01-01T00:00:00Z') / 1000,
      quick: false,
      complete: true,
    }),
  );
  const [first, second, ...others] = certificateRows(
    fleet(
      host({
        certificates: [
          CERTIFICATE,
          { ...CERTIFICATE, backend: 'cfs', lowers_ppm: [null, null, null] },
        ],
      }),
    ),
    { ...noHistory, measured },
  );
  expect(others).toEqual([]);
  expect(first).toMatchObject({
    host: 'a',
    backend: 'deadline',
    bounded: 2,
    worst: { lower_ppm: -12_000, share_ppm: 300_000 },
    confidence_ppm: 800_000,
    measured_at: '2026-01-01T00:00:00.000Z',
    quick: false,
    complete: true,
  });
  expect(second).toMatchObject({ backend: 'cfs', bounded: 0, worst: null });
});

it('has a row for a host without certificates', () => {
  const [row] = certificateRows(
    fleet(host({ facts: { policy: null } } as Partial<SnapshotHost>)),
    { ...noHistory, measured: of(event('2026-01-01T01:00:00Z')) },
  );
  expect(row).toMatchObject({
    backend: null,
    worst: null,
    confidence_ppm: null,
    measured_at: '2026-01-01T01:00:00Z',
    quick: null,
  });
  expect(row?.status.state).toBe('out of date');
});

it('says why prices are not in force', () => {
  const bare = host({});
  const poor = of(event('2026-01-02T00:00:00Z', {}, 'explains only 62 %'));
  const before = of(job('2026-01-01T00:00:00Z', '2026-01-03T00:00:00Z'));
  const after = of(job('2026-01-02T12:00:00Z', '2026-01-03T00:00:00Z'));
  const stand = (changes: Partial<Parameters<typeof statusOfPrices>[1]>) =>
    statusOfPrices(bare, { poor: NONE, done: NONE, ...changes });
  expect(
    statusOfPrices(
      host({ prices_ns: { net_rx: 1 } as unknown as SnapshotHost['prices_ns'] }),
      { poor, done: NONE },
    ).state,
  ).toBe('in force');
  expect(stand({ poor })).toEqual({
    state: 'poor fit',
    why: 'explains only 62 %',
  });
  expect(stand({ poor, done: before }).state).toBe('poor fit');
  expect(stand({ poor, done: after }).state).toBe('out of date');
  expect(stand({ done: before }).state).toBe('out of date');
  expect(stand({}).state).toBe('none known');
});

it('has the prices of each host', () => {
  const prices_ns = { net_rx: 12_000 } as unknown as SnapshotHost['prices_ns'];
  expect(
    priceRows(fleet(host({ prices_ns }), host({ name: 'b' })), {
      poor: NONE,
      done: of(job('2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z')),
    }),
  ).toMatchObject([
    {
      host: 'a',
      prices_ns: { net_rx: 12_000 },
      done_at: '2026-01-01T01:00:00Z',
    },
    { host: 'b', prices_ns: {}, done_at: null },
  ]);
});

it('tells benchmark runs from live use', () => {
  expect(ofBenchmark(event('', { source: 'benchmark' }))).toBe(true);
  expect(ofBenchmark(event('', { source: 'live' }))).toBe(false);
});
