// SPDX-License-Identifier: Apache-2.0

// Reading from the API: lists, single things, and what changes meanwhile.

import {
  type QueryClient,
  type QueryKey,
  keepPreviousData,
  useInfiniteQuery,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useEffect, useMemo, useRef } from 'react';

import { useApi, useMayRead } from '../app/api';
import { type Fleet, updated } from '../model/fleet';
import { newestByHost } from '../model/series';
import { type Client, nextMarker } from './client';
import { pollInterval } from './failures';
import {
  MAX_PAGES,
  type Pages,
  countRows,
  readAgain,
  readPages,
} from './pages';
import {
  type Answer,
  type ListAnswer,
  type ListPath,
  type QueryOf,
  type Row,
  nameOf,
} from './routes';
import { patchReservation, withNewer } from './singles';
import type {
  Balloon,
  Bucket,
  DetailedHost,
  Event,
  Host,
  Reservation,
  Snapshot,
} from './types';

export { segment } from './routes';

/** How often things are asked for, in ms. */
export const EVERY = {
  /** What a user watches. */
  live: 1_500,
  /** Short lists, and what follows a change. */
  list: 5_000,
  /** Lists of the whole fleet, which events update meanwhile. */
  fleet: 20_000,
  /** What is measured seldom. */
  slow: 60_000,
} as const;

/** The first page comes at once, the others in as few requests as possible. */
const FIRST_PAGE = 100;
const NEXT_PAGE = 1000;
/** As of the other requests, see made(). */
const FRESH_MS = 1_000;
const TOO_LONG = new Error('The list is longer than a view can hold.');

/** What a view shows of a request. */
export interface Result<T> {
  data: T | undefined;
  error: Error | null;
  /** When the data was read, in ms, if the last request failed; else null. */
  readAt: number | null;
  /** Whether there is neither data nor an error yet. */
  loading: boolean;
  refetch: () => unknown;
}

/** A list that is read as a whole. */
export interface Collection<T> extends Result<T[]> {
  /** Whether the last page was read. */
  complete: boolean;
}

function every(client: Client, ms: number) {
  return ({ state }: { state: { error: Error | null } }) =>
    pollInterval(ms, state.error, client.connection.failures);
}

/** When data was read whose last request failed. */
function readAt(found: {
  error: Error | null;
  dataUpdatedAt: number;
}): number | null {
  // That of other data is not asked for: it changes with each request, and
  // what uses it is drawn again.
  return found.error === null ? null : found.dataUpdatedAt || null;
}

/** Ask for one thing, again and again. */
export function usePolled<T>(
  key: QueryKey,
  ask: (signal: AbortSignal) => Promise<T>,
  everyMs: number,
  enabled = true,
): Result<T> {
  const { client } = useApi();
  const found = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ask(signal),
    refetchInterval: every(client, everyMs),
    enabled,
  });
  return {
    data: found.data,
    error: found.error,
    readAt: readAt(found),
    loading: found.isPending && enabled,
    refetch: found.refetch,
  };
}

/** Read a list as a whole, again and again. */
export function useList<P extends ListPath>(
  path: P,
  query: QueryOf<'GET', P>,
  everyMs: number,
): Collection<Row<P>> {
  const { client } = useApi();
  const name = nameOf(path);
  const cache = useQueryClient();
  const found = useQuery({
    queryKey: [name, 'all', query],
    queryFn: ({ signal, queryKey }) =>
      readList(client, cache, { path, query, queryKey, signal }),
    // Long lists are read less often, and soon again where a page is missing.
    refetchInterval: ({ state: { data, error } }) => {
      const pages = data?.pages.length ?? 0;
      return pollInterval(
        error !== null && pages > 0
          ? Math.min(everyMs, EVERY.list)
          : Math.min(
              everyMs * Math.max(1, Math.ceil(pages / 2)),
              Math.max(everyMs, EVERY.slow),
            ),
        error,
        client.connection.failures,
      );
    },
    // A view that is left ends its requests: a part of a list is never fresh.
    staleTime: (one) => (one.state.data?.next == null ? FRESH_MS : 0),
  });
  const pages = found.data;
  const full = pages !== undefined && pages.pages.length >= MAX_PAGES;
  const complete = pages !== undefined && pages.next === null;
  const data = useMemo(
    () => pages?.pages.flatMap((page) => page[name] as Row<P>[]),
    [pages, name],
  );
  return {
    data,
    error: found.error ?? (full && !complete ? TOO_LONG : null),
    readAt: readAt(found),
    loading: found.isPending,
    complete,
    refetch: found.refetch,
  };
}

async function readList<P extends ListPath>(
  client: Client,
  cache: QueryClient,
  list: {
    path: P;
    query: QueryOf<'GET', P>;
    queryKey: QueryKey;
    signal: AbortSignal;
  },
): Promise<Pages> {
  const { path, query, queryKey, signal } = list;
  const name = nameOf(path);
  const asked = new Map<ListAnswer, number>();
  // Single reservations that were read meanwhile are newer than their page.
  const newest = (found: Pages): Pages =>
    name === 'reservations'
      ? {
          ...found,
          pages: found.pages.map((page) =>
            withNewer(cache, page, asked.get(page) ?? 0),
          ),
        }
      : found;
  return newest(
    await readPages(
      name,
      async (marker) => {
        const askedAt = Date.now();
        const answer = await client.page(path, {
          query,
          limit: marker === null ? FIRST_PAGE : NEXT_PAGE,
          marker,
          signal,
        });
        asked.set(answer, askedAt);
        return answer;
      },
      (part) => {
        const known = cache.getQueryData<Pages>(queryKey);
        // A list that is read again stays as it is until it was read.
        if (
          !signal.aborted &&
          (known === undefined ||
            (known.next !== null &&
              countRows(name, part) > countRows(name, known)))
        ) {
          cache.setQueryData<Pages>(queryKey, newest(part));
        }
      },
    ),
  );
}

/** A list that is read as far as its user goes. */
export interface Growing<T> extends Result<T[]> {
  /** Read the next page; null when there is none. */
  more: (() => unknown) | null;
  fetching: boolean;
}

export function useGrowing<P extends ListPath>(
  path: P,
  query: QueryOf<'GET', P>,
  everyMs: number,
  size = 100,
): Growing<Row<P>> {
  const { client } = useApi();
  const name = nameOf(path);
  const found = useInfiniteQuery({
    queryKey: [name, 'growing', query, size],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam, signal }) =>
      client.page(path, { query, limit: size, marker: pageParam, signal }),
    getNextPageParam: (last: ListAnswer) => nextMarker(last.links),
    // Every page is read again: long lists are read less often.
    refetchInterval: (one) =>
      pollInterval(
        everyMs * Math.max(1, one.state.data?.pages.length ?? 1),
        one.state.error,
        client.connection.failures,
      ),
    placeholderData: keepPreviousData,
  });
  const data = useMemo(
    () => found.data?.pages.flatMap((page) => page[name] as Row<P>[]),
    [found.data, name],
  );
  return {
    data,
    error: found.error,
    readAt: readAt(found),
    loading: found.isPending,
    refetch: found.refetch,
    more: found.hasNextPage ? found.fetchNextPage : null,
    fetching: found.isFetchingNextPage,
  };
}

export function useHosts(): Collection<Host> {
  return useList('/v1/hosts', {}, EVERY.fleet);
}

export function useHost(name: string): Result<DetailedHost> {
  const { client } = useApi();
  return usePolled(
    ['host', name],
    async (signal) =>
      (await client.call('GET', '/v1/hosts/{name}', { path: { name }, signal }))
        .host,
    EVERY.list,
  );
}

export function useReservations(): Collection<Reservation> {
  // Without events, only the list itself shows what has changed.
  const followed = useMayRead('/v1/events');
  return useList('/v1/reservations', {}, followed ? EVERY.fleet : EVERY.list);
}

/** The reservation of an instance; null when it has none. */
export function useReservation(
  uuid: string,
  everyMs: number = EVERY.live,
): Result<Reservation | null> {
  const { client } = useApi();
  return usePolled(
    ['reservation', uuid],
    (signal) => reservationOf(client, uuid, signal),
    everyMs,
  );
}

/** The balloon of an instance; null when it has none. */
export function useBalloon(uuid: string): Result<Balloon | null> {
  const { client } = useApi();
  return usePolled(
    ['balloon', uuid],
    async (signal) =>
      (
        await client.call('GET', '/v1/balloons', {
          query: { instance_uuid: uuid },
          signal,
        })
      ).balloons[0] ?? null,
    EVERY.live,
  );
}

/** How far back sums by minute are asked for: the newest may lag. */
const FLEET_USAGE_MS = 150_000;

/** The newest sums by minute of each host, by its name. */
export function useFleetUsage(): Result<Map<string, Bucket>> {
  const { client } = useApi();
  const found = usePolled(
    ['usage', 'fleet'],
    async (signal) => {
      const start = new Date(client.serverNow() - FLEET_USAGE_MS);
      const rows: Bucket[] = [];
      let marker: string | null = null;
      do {
        const page: Answer<'GET', '/v1/usage'> = await client.call(
          'GET',
          '/v1/usage',
          {
            query: {
              resolution: 'minute',
              sort_dir: 'desc',
              start: start.toISOString(),
              limit: NEXT_PAGE,
              marker: marker ?? undefined,
            },
            signal,
            whole: true,
          },
        );
        const sums = page.usage as Bucket[];
        // Sums of single instances are in the same answer only if asked for.
        rows.push(...sums.filter((row) => row.instance_uuid === null));
        marker = nextMarker(page.links);
      } while (marker !== null && rows.length < NEXT_PAGE * MAX_PAGES);
      return rows;
    },
    EVERY.fleet,
  );
  const data = useMemo(
    () => (found.data === undefined ? undefined : newestByHost(found.data)),
    [found.data],
  );
  return { ...found, data };
}

/** Follow what schedulers know: 304 while nothing changes, else changes. */
export function useFleet(): Result<Fleet> {
  const { client } = useApi();
  const known = useRef<{ answer: Snapshot; fleet: Fleet } | null>(null);
  return usePolled(
    ['snapshot'],
    async (signal) => {
      for (;;) {
        const answer: Snapshot = await client.call('GET', '/v1/snapshot', {
          query: { since: known.current?.fleet.version },
          signal,
          revalidate: true,
        });
        if (known.current?.answer !== answer) {
          known.current = {
            answer,
            fleet: updated(known.current?.fleet ?? null, answer),
          };
        }
        if (!answer.more) {
          return known.current.fleet;
        }
      }
    },
    3_000,
  );
}

/** Events of the last minute may still arrive: agents report in batches. */
const FEED_WINDOW_MS = 60_000;
const FEED_LIMIT = 200;
/** What is on the page was read after older events, when it was opened. */
const FIRST_READ_MS = 10_000;
/** More changed things than this are read by reading their list again. */
const MAX_SINGLE_READS = 20;

/**
 * Follow the events of the fleet, and read again what they are about.
 *
 * Lists of the whole fleet are long and read seldom; each change of a
 * reservation or a balloon leaves an event.
 */
export function useFeed(): void {
  const { client } = useApi();
  const cache = useQueryClient();
  const seen = useRef<Set<string> | null>(null);
  const feed = usePolled(
    ['feed'],
    async (signal) =>
      (
        await client.call('GET', '/v1/events', {
          query: {
            start: new Date(client.serverNow() - FEED_WINDOW_MS).toISOString(),
            limit: FEED_LIMIT,
          },
          signal,
        })
      ).events,
    EVERY.live,
    useMayRead('/v1/events'),
  );
  const events = feed.data;
  useEffect(() => {
    if (events === undefined) {
      return;
    }
    const before = seen.current;
    seen.current = new Set(events.map((event) => event.uuid));
    const recent = client.serverNow() - FIRST_READ_MS;
    const fresh = events.filter((event) =>
      before === null
        ? Date.parse(event.at) >= recent
        : !before.has(event.uuid),
    );
    if (fresh.length > 0) {
      void refresh(client, cache, fresh);
    }
  }, [events, client, cache]);
}

async function refresh(
  client: Client,
  cache: QueryClient,
  events: readonly Event[],
): Promise<void> {
  void cache.invalidateQueries({ queryKey: ['events'] });
  const instances = new Set(
    events.flatMap((event) => event.instance_uuid ?? []),
  );
  for (const host of new Set(events.map((event) => event.host))) {
    void cache.invalidateQueries({ queryKey: ['host', host] });
  }
  if (instances.size > MAX_SINGLE_READS) {
    void readAgain(cache, { queryKey: ['reservations'] });
    void readAgain(cache, { queryKey: ['balloons'] });
    return;
  }
  for (const uuid of instances) {
    void cache.invalidateQueries({ queryKey: ['balloon', uuid] });
    const askedAt = Date.now();
    try {
      const found = await reservationOf(
        client,
        uuid,
        AbortSignal.timeout(10_000),
      );
      await patchReservation(cache, uuid, found, askedAt);
    } catch {
      // The list is read again before long.
    }
  }
}

async function reservationOf(
  client: Client,
  uuid: string,
  signal: AbortSignal,
): Promise<Reservation | null> {
  // By the list: that an instance has none is no error.
  const found = await client.call('GET', '/v1/reservations', {
    query: { instance_uuid: uuid },
    signal,
  });
  return found.reservations[0] ?? null;
}
