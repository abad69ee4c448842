// SPDX-License-Identifier: Apache-2.0

// What an evaluation says of a change of one instance on its own host.

import type { EvaluatedHost, Reservation } from '../api/types';

/** Backends whose reservations use capacity; those of others use none. */
const ADMITTED: readonly string[] = ['deadline', 'rtds', 'credit2', 'credit'];

export interface Change {
  /** What the instance has of the capacity that is in use, in mcpu. */
  held: number;
  /** What it needs beyond that, in mcpu; below 0 if it needs less. */
  more: number;
  fits: boolean;
}

/** Whether the host has room for a change: the service counts what is held. */
export function changeOf(host: EvaluatedHost, now: Reservation | null): Change {
  const enforced = now?.enforced;
  const held = enforced && ADMITTED.includes(enforced.backend)
    ? (enforced.bandwidth_mcpu ?? 0)
    : 0;
  const more = host.demand_mcpu - held;
  return {
    held,
    more,
    fits:
      host.fits ||
      (more <= host.free_mcpu &&
        host.problems.every((problem) => problem.cause === 'capacity')),
  };
}
