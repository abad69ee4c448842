// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import type { Host, Job, Reservation, Snapshot } from '../api/types';
import { updated } from './fleet';
import { type Trouble, grouped, hostTroubles, troublesOf } from './troubles';

const NOW = Date.parse('2026-01-02T12:00:00Z');

const host = (name: string, changes: object = {}) =>
  ({
    name,
    state: 'up',
    problem: null,
    backends: [{ name: 'deadline', usable: true }],
    placement: { state: 'synced', detail: '' },
    finding_counts: null,
    verification: null,
    ...changes,
  }) as Host;

const reservation = (instance_uuid: string, state: string, changes: object = {}) =>
  ({
    instance_uuid,
    server_name: null,
    state,
    since: null,
    code: null,
    detail: null,
    ...changes,
  }) as Reservation;

const job = (uuid: string, updated_at: string | null) =>
  ({
    uuid,
    host: 'a',
    kind: 'profile-error',
    detail: 'the guest ended',
    updated_at,
  }) as Job;

const nothing = { hosts: [], fleet: undefined, reservations: [], jobs: [] };

const kinds = (of: Partial<Parameters<typeof troublesOf>[0]>) =>
  troublesOf({ ...nothing, ...of }, NOW).map((one) => one.kind);

it('finds nothing wrong with what is well', () => {
  expect(
    kinds({
      hosts: [
        host('a'),
        host('b', { backends: [], placement: null }),
        host('c', { finding_counts: { problem: 0, note: 3 } }),
      ],
      reservations: [
        reservation('1', 'applied'),
        reservation('2', 'pending', { since: '2026-01-02T11:59:30Z' }),
        reservation('3', 'pending'),
        reservation('4', 'released'),
      ],
      jobs: [job('1', '2026-01-01T11:00:00Z'), job('2', null)],
    }),
  ).toEqual([]);
});

it('finds all that is wrong with a host', () => {
  const found = hostTroubles(
    host('a', {
      problem: 'its report cannot be read',
      backends: [{ name: 'deadline', usable: false }],
      placement: { state: 'failed', detail: 'no answer' },
      finding_counts: { problem: 2, note: 1 },
      verification: {
        contradictions: [
          { code: 'vsched.x', detail: 'one' },
          { code: 'vsched.x', detail: 'other' },
        ],
      },
    }),
    true,
  );
  expect(found.map((one) => one.kind)).toEqual([
    'down',
    'problem',
    'no backend',
    'placement',
    'finding',
    'contradiction',
    'contradiction',
  ]);
  expect(found.map((one) => one.detail)).toContain('placement: no answer');
  expect(found.map((one) => one.detail)).toContain('the doctor found 2 problems');
  // Each can be told from the others.
  expect(new Set(found.map((one) => one.key)).size).toBe(found.length);
});

it('takes the newest answer on which hosts report', () => {
  const fleet = updated(null, {
    version: 1,
    full: true,
    more: false,
    down: ['a'],
    removed: [],
    slowdowns: [],
    hosts: [],
  } as Snapshot);
  expect(kinds({ hosts: [host('a'), host('b', { state: 'down' })], fleet })).toEqual(
    ['down'],
  );
});

it('finds reservations that are not held', () => {
  const found = troublesOf(
    {
      ...nothing,
      reservations: [
        reservation('1', 'refused', { detail: 'it does not fit' }),
        reservation('2', 'degraded', { code: 'vsched.backend.unavailable' }),
        reservation('3', 'pending', { since: '2026-01-02T11:59:00Z' }),
        // The same, in another list that was read later.
        reservation('1', 'refused', { detail: 'it does not fit yet' }),
      ],
    },
    NOW,
  );
  expect(found.map(({ kind, detail }) => [kind, detail])).toEqual([
    ['refused', 'reservation refused: it does not fit yet'],
    ['degraded', 'reservation degraded: vsched.backend.unavailable'],
    ['pending', 'its agent has not answered for more than a minute'],
  ]);
});

it('finds jobs that failed lately', () => {
  const found = troublesOf(
    { ...nothing, jobs: [job('1', '2026-01-02T11:00:00Z')] },
    NOW,
  );
  expect(found).toEqual([
    {
      key: 'job 1',
      kind: 'job',
      subject: { host: 'a' },
      detail: 'profile-error failed: the guest ended',
    },
  ]);
});

const some = (kind: Trouble['kind'], count: number): Trouble[] =>
  Array.from({ length: count }, (_, index) => ({
    key: `${kind} ${index}`,
    kind,
    subject: { host: `${kind} ${index}` },
    detail: '',
  }));

it('shows all that there is room for, errors first', () => {
  expect(grouped([], 12)).toEqual([]);
  const groups = grouped([...some('job', 5), ...some('down', 7)], 12);
  expect(
    groups.map(({ kind, severity, shown, more }) => [
      kind,
      severity,
      shown.length,
      more,
    ]),
  ).toEqual([
    ['down', 'error', 7, null],
    ['job', 'warning', 5, null],
  ]);
});

it('links to the list of what it does not show', () => {
  const groups = grouped(
    [...some('refused', 40), ...some('down', 20), ...some('degraded', 3)],
    12,
  );
  expect(groups.map(({ kind, shown, more }) => [kind, shown.length, more])).toEqual(
    [
      [
        'down',
        5,
        {
          text: 'and 15 more hosts that do not report',
          to: '/hosts?hosts.state=down',
        },
      ],
      [
        'refused',
        4,
        {
          text: 'and 36 more refused reservations',
          to: '/reservations?reservations.state=refused',
        },
      ],
      // Few of a kind are all shown.
      ['degraded', 3, null],
    ],
  );
  expect(groups[0]?.shown[0]?.key).toBe('down 0');
});

it('counts a single one that it does not show', () => {
  expect(grouped(some('no backend', 13), 12)[0]?.more).toEqual({
    text: 'and 1 more host without a usable backend',
    to: '/hosts?hosts.trouble=no+backend',
  });
});

it('links to lists even of what it has no room for at all', () => {
  const groups = grouped([...some('down', 3), ...some('job', 2)], 1);
  expect(groups.map(({ shown, more }) => [shown.length, more?.text])).toEqual([
    [1, 'and 2 more hosts that do not report'],
    [0, 'and 2 more failed jobs'],
  ]);
});
