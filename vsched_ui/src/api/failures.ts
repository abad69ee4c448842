// SPDX-License-Identifier: Apache-2.0

// What follows from requests that failed.

import { ApiError, NotPermitted, pollDelay } from './client';

/** A request that is refused may be allowed later, by another policy. */
const REFUSED_MS = 60_000;

/**
 * When something is requested again.
 *
 * @param everyMs - how often it is while requests succeed.
 * @param error - why the last request failed, if it did.
 * @param failures - how many requests in a row were not answered.
 * @returns in ms; false for never.
 */
export function pollInterval(
  everyMs: number,
  error: Error | null,
  failures: number,
): number | false {
  if (error instanceof NotPermitted) {
    return false;
  }
  if (error instanceof ApiError && error.status === 403) {
    return Math.max(everyMs, REFUSED_MS);
  }
  return pollDelay(everyMs, failures);
}

/** What was read, and how the last request ended. */
export interface Read {
  data: unknown;
  error: Error | null;
  /** When the data was read, in ms since the epoch; null if that is unknown. */
  readAt?: number | null;
}

/** Why data is not up to date. */
export interface Outdated {
  error: Error;
  /** When it was read, by the clock of the server, in ISO 8601. */
  at: string | null;
}

/**
 * Why data that is shown is not up to date; null if it is, or if there is none.
 *
 * @param skewMs - by how much the clock of the server is ahead.
 */
export function outdated(read: Read, skewMs: number): Outdated | null {
  const { data, error, readAt = null } = read;
  if (data === undefined || error === null) {
    return null;
  }
  return {
    error,
    at: readAt === null ? null : new Date(readAt + skewMs).toISOString(),
  };
}

/**
 * When the oldest of several results was read whose last request failed.
 *
 * @returns null if all are up to date, or that is unknown of one.
 */
export function oldest(...reads: readonly Read[]): number | null {
  const failed = reads.filter((one) => one.error !== null);
  const times = failed.flatMap((one) => one.readAt ?? []);
  return times.length > 0 && times.length === failed.length
    ? Math.min(...times)
    : null;
}
