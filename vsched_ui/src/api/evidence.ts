// SPDX-License-Identifier: Apache-2.0

// The newest events and jobs of each host, by lists of the whole fleet.

import { useMemo } from 'react';

import { useApi } from '../app/api';
import { firstByHost } from '../model/evidence';
import { type Query, nextMarker } from './client';
import { EVERY, type Result, usePolled } from './hooks';
import type { ListAnswer } from './pages';
import type { Event, Job } from './types';

/** As few requests as possible, and no more pages than these. */
const PAGE = 1000;
const MAX_PAGES = 20;

const every = () => true;

function useNewest<T extends { host: string }>(
  name: 'events' | 'jobs',
  query: Query,
  wanted: (row: T) => boolean,
): Result<Map<string, T>> {
  const { client } = useApi();
  const found = usePolled(
    ['newest', name, query],
    async (signal) => {
      const rows: T[] = [];
      let marker: string | null = null;
      for (let pages = 0; pages < MAX_PAGES; pages += 1) {
        const page: ListAnswer = await client.get(`v1/${name}`, {
          query: { ...query, limit: PAGE, marker: marker ?? undefined },
          signal,
        });
        rows.push(...(page[name] as T[]));
        marker = nextMarker(page.links);
        if (marker === null) {
          return rows;
        }
      }
      // Without the others nothing can be said of the hosts that are missing.
      throw new Error(
        `There are more than ${rows.length} ${name} of a kind: which is the newest of each host is not known.`,
      );
    },
    EVERY.slow,
  );
  const data = useMemo(
    // Both lists begin with the newest.
    () => found.data && firstByHost(found.data.filter(wanted)),
    [found.data, wanted],
  );
  return { ...found, data };
}

/** Of each host the newest event with a code, by its name. */
export function useNewestEvents(
  code: string,
  wanted: (event: Event) => boolean = every,
): Result<Map<string, Event>> {
  return useNewest<Event>('events', { code }, wanted);
}

/** Of each host the newest job of a kind that is done, by its name. */
export function useNewestDone(kind: Job['kind']): Result<Map<string, Job>> {
  return useNewest<Job>('jobs', { kind: [kind], state: ['done'] }, every);
}
