// SPDX-License-Identifier: Apache-2.0

import { QueryClient } from '@tanstack/react-query';
import { expect, it } from 'vitest';

import type { Pages } from './pages';
import type { ListAnswer } from './routes';
import { patchReservation, withNewer } from './singles';
import type { Reservation } from './types';

const ALL = ['reservations', 'all', {}];
const REFUSED = ['reservations', 'all', { state: ['refused'] }];

const row = (instance_uuid: string, runtime_us: number) =>
  ({ instance_uuid, runtime_us }) as Reservation;

const page = (...reservations: Reservation[]): ListAnswer => ({
  links: [],
  reservations,
});

function runtimes(cache: QueryClient, key: unknown[]): (number | null)[] {
  return (cache.getQueryData<Pages>(key)?.pages ?? []).flatMap((one) =>
    (one.reservations as Reservation[]).map((found) => found.runtime_us),
  );
}

function filled(): QueryClient {
  const cache = new QueryClient();
  for (const key of [ALL, REFUSED]) {
    cache.setQueryData<Pages>(key, {
      pages: [page(row('a', 1), row('b', 2)), page(row('c', 3))],
      next: null,
    });
  }
  return cache;
}

it('puts a reservation into each list that has it', async () => {
  const cache = filled();
  await patchReservation(cache, 'b', row('b', 20));
  expect(runtimes(cache, ALL)).toEqual([1, 20, 3]);
  expect(cache.getQueryData(['reservation', 'b'])).toEqual(row('b', 20));
});

it('has lists by state read again, and others only for what is new', async () => {
  const cache = filled();
  const stale = (key: unknown[]) => cache.getQueryState(key)?.isInvalidated;
  await patchReservation(cache, 'b', row('b', 20));
  expect([stale(ALL), stale(REFUSED)]).toEqual([false, true]);
  await patchReservation(cache, 'new', row('new', 1));
  expect(stale(ALL)).toBe(true);
});

it('leaves a list that could not be read again as it is known', async () => {
  const cache = filled();
  const problem = new Error('refused');
  await cache
    .fetchQuery({
      queryKey: ALL,
      queryFn: () => Promise.reject(problem),
      retry: false,
    })
    .catch(() => undefined);
  const before = cache.getQueryState(ALL)?.dataUpdatedAt;
  await patchReservation(cache, 'b', row('b', 20));
  expect(runtimes(cache, ALL)).toEqual([1, 20, 3]);
  expect(cache.getQueryState(ALL)).toMatchObject({
    error: problem,
    dataUpdatedAt: before,
  });
});

it('is not replaced by a page that was asked for before', async () => {
  const cache = filled();
  await patchReservation(cache, 'b', row('b', 20), 1000);
  const read = (askedAt: number) =>
    (
      withNewer(cache, page(row('a', 1), row('b', 2)), askedAt)
        .reservations as Reservation[]
    ).map((found) => found.runtime_us);
  expect(read(999)).toEqual([1, 20]);
  expect(read(1001)).toEqual([1, 2]);
  await patchReservation(cache, 'b', null, 2000);
  expect(read(1999)).toEqual([1]);
  expect(read(2001)).toEqual([1, 2]);
});
