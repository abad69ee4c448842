// SPDX-License-Identifier: Apache-2.0

// Series of /v1/usage: live ones grow by what is new, sums are read whole.

import { useQueryClient } from '@tanstack/react-query';

import { useApi } from '../app/api';
import { merge, newest } from '../model/series';
import { type Client, nextMarker } from './client';
import { EVERY, type Result, usePolled } from './hooks';
import type { Answer, QueryOf, Row } from './routes';
import type { Bucket, HostSample, Sample } from './types';

type Usage = Row<'/v1/usage'>;
type Query = QueryOf<'GET', '/v1/usage'>;

const PAGE = 1000;
/** Agents report in batches: newer samples may come before older ones. */
const OVERLAP_MS = 15_000;

async function rows<T extends Usage>(
  client: Client,
  query: Query,
  mostPages: number,
  signal: AbortSignal,
): Promise<T[]> {
  const found: T[] = [];
  let marker: string | null = null;
  for (let page = 0; page < mostPages; page += 1) {
    const answer: Answer<'GET', '/v1/usage'> = await client.call('GET', '/v1/usage', {
      query: { ...query, limit: PAGE, marker: marker ?? undefined },
      signal,
      // Hosts are of no project.
      whole: query.of === 'hosts',
    });
    // Which of the kinds it has depends on the query.
    found.push(...(answer.usage as T[]));
    marker = nextMarker(answer.links);
    if (marker === null) {
      break;
    }
  }
  return found;
}

function useLive<T extends Usage>(
  key: readonly string[],
  query: Query,
  windowMs: number,
  rowKey: (row: T) => string,
  enabled: boolean,
): Result<T[]> {
  const { client } = useApi();
  const cache = useQueryClient();
  const queryKey = ['usage', 'live', ...key];
  return usePolled<T[]>(
    queryKey,
    async (signal) => {
      const known = cache.getQueryData<T[]>(queryKey) ?? [];
      const from = client.serverNow() - windowMs;
      const last = newest(known);
      const start =
        last === null ? from : Math.max(from, Date.parse(last) - OVERLAP_MS);
      const found = await rows<T>(
        client,
        {
          ...query,
          resolution: 'raw',
          // The newest first: a limit cuts what is old.
          sort_dir: 'desc',
          start: new Date(start).toISOString(),
        },
        4,
        signal,
      );
      return merge(known, found, from, rowKey);
    },
    EVERY.live,
    enabled,
  );
}

/** What the CPUs of a host did, by second. */
export function useHostSeconds(
  host: string,
  windowMs: number,
): Result<HostSample[]> {
  return useLive<HostSample>(
    ['host', host],
    { of: 'hosts', host },
    windowMs,
    () => '',
    true,
  );
}

/** What each instance of a host got, by second. */
export function useInstancesSeconds(
  host: string,
  windowMs: number,
  enabled: boolean,
): Result<Sample[]> {
  return useLive<Sample>(
    ['instances', host, String(windowMs)],
    { host },
    windowMs,
    (row) => row.instance_uuid,
    enabled,
  );
}

/** What one instance got, by second. */
export function useInstanceSeconds(
  uuid: string,
  windowMs: number,
  enabled: boolean,
): Result<Sample[]> {
  return useLive<Sample>(
    ['instance', uuid],
    { instance_uuid: uuid },
    windowMs,
    (row) => row.host ?? '',
    enabled,
  );
}

/** Sums of one instance by minute or hour. */
export function useInstanceSums(
  uuid: string,
  resolution: 'minute' | 'hour',
  windowMs: number,
  enabled: boolean,
): Result<Bucket[]> {
  const { client } = useApi();
  return usePolled<Bucket[]>(
    ['usage', 'sums', uuid, resolution, String(windowMs)],
    (signal) =>
      rows<Bucket>(
        client,
        {
          instance_uuid: uuid,
          resolution,
          sort_dir: 'asc',
          start: new Date(client.serverNow() - windowMs).toISOString(),
        },
        2,
        signal,
      ),
    EVERY.fleet,
    enabled,
  );
}
