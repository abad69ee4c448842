// SPDX-License-Identifier: Apache-2.0

// Lists that are read as a whole, one page after the other.

import type { InvalidateQueryFilters, QueryClient } from '@tanstack/react-query';

import { nextMarker } from './client';
import type { ListAnswer } from './routes';

/** What was read of a list. */
export interface Pages {
  pages: readonly ListAnswer[];
  /** The marker of the first page that was not read; null if all were. */
  next: string | null;
}

/** No list of the page holds more pages. */
export const MAX_PAGES = 20;

/** Every part that is shown has at least so many times the rows before. */
const GROWTH = 4;

export function countRows(name: string, of: Pages | undefined): number {
  return (of?.pages ?? []).reduce(
    (count, page) => count + (page[name] as unknown[]).length,
    0,
  );
}

/**
 * Read a list; the next page is requested before the last one is shown.
 *
 * Each part that is shown is sorted and filtered as a whole, so that a long
 * list is shown in few parts.
 *
 * @param ask - returns the page after a marker.
 * @param show - is called with the first part of what is not yet complete,
 *   with larger ones, and with what was read when a page cannot be.
 * @throws what "ask" throws.
 */
export async function readPages(
  name: string,
  ask: (marker: string | null) => Promise<ListAnswer>,
  show: (found: Pages) => void,
): Promise<Pages> {
  let found: Pages = { pages: [], next: null };
  let shown = 0;
  let answer = await ask(null);
  for (;;) {
    const next = nextMarker(answer.links);
    found = { pages: [...found.pages, answer], next };
    if (next === null || found.pages.length >= MAX_PAGES) {
      return found;
    }
    const coming = ask(next);
    const count = countRows(name, found);
    if (count >= GROWTH * shown) {
      shown = count;
      show(found);
    }
    try {
      answer = await coming;
    } catch (problem) {
      show(found);
      throw problem;
    }
  }
}

/**
 * Have lists read again that were read before a change.
 *
 * One that is being read is read again after that: if each change began it
 * anew, a long list might never be complete.
 */
export async function readAgain(
  cache: QueryClient,
  filters: InvalidateQueryFilters,
): Promise<void> {
  const busy = cache
    .getQueryCache()
    .findAll({ ...filters, fetchStatus: 'fetching' });
  await cache.invalidateQueries(filters, { cancelRefetch: false });
  await Promise.all(
    busy.map(({ queryKey }) =>
      cache.invalidateQueries(
        { queryKey, exact: true },
        { cancelRefetch: false },
      ),
    ),
  );
}
