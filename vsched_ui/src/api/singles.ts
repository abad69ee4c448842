// SPDX-License-Identifier: Apache-2.0

// Reservations that are read one by one, and the lists that have them.

import type { QueryClient } from '@tanstack/react-query';

import { dropPolls } from './mutations';
import { type Pages, readAgain } from './pages';
import type { ListAnswer, QueryOf } from './routes';
import type { Reservation } from './types';

/**
 * Single reservations that were read lately, and when they were asked for; null
 * for instances that had none.
 */
const singles = new WeakMap<
  QueryClient,
  Map<string, { found: Reservation | null; askedAt: number }>
>();
const SINGLES_MS = 60_000;

/** Put single reservations into a page that was asked for before them. */
export function withNewer(
  cache: QueryClient,
  answer: ListAnswer,
  askedAt: number,
): ListAnswer {
  const known = singles.get(cache);
  if (known === undefined || known.size === 0) {
    return answer;
  }
  return {
    ...answer,
    reservations: rowsOf(answer).flatMap((row) => {
      const single = known.get(row.instance_uuid);
      return single !== undefined && single.askedAt > askedAt
        ? (single.found ?? [])
        : row;
    }),
  };
}

function rowsOf(page: ListAnswer): Reservation[] {
  return page.reservations as Reservation[];
}

function has(page: ListAnswer, uuid: string): boolean {
  return rowsOf(page).some((row) => row.instance_uuid === uuid);
}

/**
 * Put a reservation into every list that has it, and on the view of its
 * instance.
 *
 * @param found - null for an instance that has none.
 * @param askedAt - when it was asked for: what was asked for before and is
 *   still on its way does not replace it, and it replaces nothing that was
 *   asked for later.
 */
export async function patchReservation(
  cache: QueryClient,
  uuid: string,
  found: Reservation | null,
  askedAt: number = Date.now(),
): Promise<void> {
  const known = singles.get(cache) ?? new Map();
  singles.set(cache, known);
  if (known.get(uuid)?.askedAt > askedAt) {
    return;
  }
  known.set(uuid, { found, askedAt });
  for (const [one, single] of known) {
    if (single.askedAt < askedAt - SINGLES_MS) {
      known.delete(one);
    }
  }
  const listed = patchLists(cache, uuid, found);
  // It may be new, or be in another state than a list is of.
  void readAgain(cache, {
    queryKey: ['reservations'],
    predicate: (query) => {
      const filter = query.queryKey[2] as
        | QueryOf<'GET', '/v1/reservations'>
        | undefined;
      return !listed || filter?.state !== undefined;
    },
  });
  const key = ['reservation', uuid];
  await dropPolls(cache, [key]);
  // Another one may have been put there meanwhile.
  if (known.get(uuid)?.found === found) {
    cache.setQueryData(key, found);
  }
}

/** Put a reservation into lists; returns whether any has it. */
function patchLists(
  cache: QueryClient,
  uuid: string,
  found: Reservation | null,
): boolean {
  if (found === null) {
    return false;
  }
  const patched = (page: ListAnswer): ListAnswer =>
    has(page, uuid)
      ? {
          ...page,
          reservations: rowsOf(page).map((row) =>
            row.instance_uuid === uuid ? found : row,
          ),
        }
      : page;
  let listed = false;
  for (const query of cache
    .getQueryCache()
    .findAll({ queryKey: ['reservations'] })) {
    const pages = (query.state.data as Pages | undefined)?.pages;
    if (pages?.some((page) => has(page, uuid))) {
      listed = true;
      // When the list was read, and whether it could be, stays as it is.
      query.setState({
        data: { ...(query.state.data as Pages), pages: pages.map(patched) },
      });
    }
  }
  return listed;
}
