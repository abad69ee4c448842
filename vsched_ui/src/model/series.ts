// SPDX-License-Identifier: Apache-2.0

// From the rows of /v1/usage to what a chart draws.

import type { Bucket, HostSample, Sample } from '../api/types';
import { rateMcpu, withheldPpm } from './shares';

/** A point of a line: ms since the epoch, and a value or a gap. */
export type Point = [number, number | null];

export interface Line {
  name: string;
  points: Point[];
}

/** A row that was read, and when its interval ended. */
interface Timed {
  at: string;
}

/**
 * Add newer rows to those that are known, drop what is too old.
 *
 * @param key - tells rows apart that ended at the same moment.
 */
export function merge<T extends Timed>(
  known: readonly T[],
  found: readonly T[],
  fromMs: number,
  key: (row: T) => string,
): T[] {
  const rows = new Map<string, T>();
  for (const row of [...known, ...found]) {
    if (Date.parse(row.at) >= fromMs) {
      rows.set(`${row.at} ${key(row)}`, row);
    }
  }
  return [...rows.values()].sort(
    (one, other) => Date.parse(one.at) - Date.parse(other.at),
  );
}

/** The newest moment of rows, null of none. */
export function newest(rows: readonly Timed[]): string | null {
  let found: string | null = null;
  for (const row of rows) {
    if (found === null || Date.parse(row.at) > Date.parse(found)) {
      found = row.at;
    }
  }
  return found;
}

/** Put a gap into a line where samples are missing. */
export function withGaps(points: readonly Point[], most: number): Point[] {
  const found: Point[] = [];
  for (const point of points) {
    const last = found.at(-1);
    if (last !== undefined && point[0] - last[0] > most) {
      found.push([last[0] + 1, null]);
    }
    found.push(point);
  }
  return found;
}

/** What instances and the host used in one second or so, in CPUs. */
export interface Stack {
  /** The middle of each interval, in ms since the epoch. */
  times: number[];
  /** Bottom to top; a value for each time. */
  layers: { key: string; values: number[] }[];
}

/** Keys of the layers that are not an instance. */
export const OTHERS = 'other instances';
export const HOST_WORK = "host's work for instances";
export const HOST_OWN = "host's own";
export const STEAL = 'stolen from below';

/** Samples that are missing for this many slots are taken to be as before. */
const HELD_SLOTS = 2;

/**
 * Put rates into slots: their mean where there are several, the one before
 * where one is missing. Intervals are a second or so, and slots are not.
 */
function slotted(
  rates: readonly (readonly [number | undefined, number])[],
  slots: number,
): number[] {
  const sums = new Array<number>(slots).fill(0);
  const counts = new Array<number>(slots).fill(0);
  for (const [slot, rate] of rates) {
    if (slot !== undefined) {
      sums[slot] = (sums[slot] ?? 0) + rate;
      counts[slot] = (counts[slot] ?? 0) + 1;
    }
  }
  let held = 0;
  let missing = HELD_SLOTS;
  return sums.map((sum, slot) => {
    const count = counts[slot] ?? 0;
    if (count > 0) {
      held = sum / count;
      missing = 0;
      return held;
    }
    missing += 1;
    return missing <= HELD_SLOTS ? held : 0;
  });
}

/**
 * Stack the CPU time of a host by who used it.
 *
 * Samples of a host end at about the same moments, so all are put into slots
 * of whole seconds. The instances that used most have layers of their own; the
 * others share one.
 */
export function stack(
  host: readonly HostSample[],
  instances: readonly Sample[],
  most: number,
  slotMs = 1000,
): Stack {
  const slotOf = (at: string) => Math.floor(Date.parse(at) / slotMs) * slotMs;
  const times = [...new Set(host.map((row) => slotOf(row.at)))].sort(
    (one, other) => one - other,
  );
  const place = new Map(times.map((time, index) => [time, index]));
  const samples = new Map<string, Sample[]>();
  for (const row of instances) {
    const known = samples.get(row.instance_uuid);
    if (known === undefined) {
      samples.set(row.instance_uuid, [row]);
    } else {
      known.push(row);
    }
  }
  const values = <T extends { at: string; interval_us: number }>(
    rows: readonly T[],
    used: (row: T) => number,
  ) =>
    slotted(
      rows.map((row) => [
        place.get(slotOf(row.at)),
        rateMcpu(used(row), row.interval_us) / 1000,
      ]),
      times.length,
    );
  const all = [...samples]
    .map(([key, rows]) => ({
      key,
      values: values(rows, (row) => row.guest_us),
      total: rows.reduce((sum, row) => sum + row.guest_us, 0),
    }))
    .sort((one, other) => other.total - one.total);
  const layers = all
    .slice(0, most)
    .map(({ key, values }) => ({ key, values }));
  const rest = all.slice(most);
  if (rest.length > 0) {
    layers.push({
      key: OTHERS,
      values: times.map((_, slot) =>
        rest.reduce((sum, one) => sum + (one.values[slot] ?? 0), 0),
      ),
    });
  }
  layers.push(
    {
      key: HOST_WORK,
      values: values(host, (row) => row.direct_us + row.shared_us),
    },
    { key: HOST_OWN, values: values(host, (row) => row.own_us) },
  );
  if (host.some((row) => row.steal_us > 0)) {
    layers.push({ key: STEAL, values: values(host, (row) => row.steal_us) });
  }
  return { times, layers };
}

/** The newest sums of each host, by its name. */
export function newestByHost(rows: readonly Bucket[]): Map<string, Bucket> {
  const found = new Map<string, Bucket>();
  for (const row of rows) {
    if (row.host === null) {
      continue;
    }
    const known = found.get(row.host);
    if (known === undefined || Date.parse(row.at) > Date.parse(known.at)) {
      found.set(row.host, row);
    }
  }
  return found;
}

/** How long the intervals of a host's sums took from first to last, in µs. */
export function spanUs(bucket: Bucket): number {
  return Math.max(
    1,
    (Date.parse(bucket.last_at) - Date.parse(bucket.first_at)) * 1000,
  );
}

/** What reserved instances of a host got, in mcpu. */
export function gotMcpu(bucket: Bucket): number {
  return rateMcpu(bucket.promised_guest_us, spanUs(bucket));
}

/** See shares.withheldPpm, over all reserved instances of a host. */
export function withheldOf(bucket: Bucket): number | null {
  return withheldPpm(
    bucket.promised_guest_us,
    bucket.wait_us,
    bucket.promised_us,
  );
}
