// SPDX-License-Identifier: Apache-2.0

// The newest events and jobs of each host, by lists of the whole fleet.

import { useMemo } from 'react';

import { useApi } from '../app/api';
import { firstByHost } from '../model/evidence';
import { nextMarker } from './client';
import { EVERY, type Result, usePolled } from './hooks';
import { type ListAnswer, type QueryOf, type Row, nameOf } from './routes';
import type { Event, Job } from './types';

/** As few requests as possible, and no more pages than these. */
const PAGE = 1000;
const MAX_PAGES = 20;

const every = () => true;

type Source = '/v1/events' | '/v1/jobs';

/** Both have the host, of which a type with a variable does not tell. */
type Of<P extends Source> = Row<P> & { host: string };

function useNewest<P extends Source>(
  path: P,
  query: QueryOf<'GET', P>,
  wanted: (row: Of<P>) => boolean,
): Result<Map<string, Of<P>>> {
  const { client } = useApi();
  const name = nameOf(path);
  const found = usePolled(
    ['newest', name, query],
    async (signal) => {
      const rows: Of<P>[] = [];
      let marker: string | null = null;
      for (let pages = 0; pages < MAX_PAGES; pages += 1) {
        const page: ListAnswer = await client.page(path, {
          query,
          limit: PAGE,
          marker,
          signal,
        });
        rows.push(...(page[name] as Of<P>[]));
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
  return useNewest('/v1/events', { code }, wanted);
}

/** Of each host the newest job of a kind that is done, by its name. */
export function useNewestDone(kind: Job['kind']): Result<Map<string, Job>> {
  return useNewest('/v1/jobs', { kind: [kind], state: ['done'] }, every);
}
