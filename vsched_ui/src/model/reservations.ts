// SPDX-License-Identifier: Apache-2.0

// What tables of reservations, and of instances with one, are filtered by.

import type { Reservation } from '../api/types';

export const STATES = [
  'applied',
  'pending',
  'degraded',
  'refused',
  'released',
] as const satisfies readonly Reservation['state'][];

/** Of an instance without one, and of one of which that is not known. */
export const NO_STATES = ['none', 'unknown'] as const;

/** What may enforce one; the last one where nothing does. */
export const ENFORCERS = [
  'deadline',
  'cfs',
  'rtds',
  'credit2',
  'credit',
  'nothing',
] as const;

/**
 * The state of what an instance has.
 *
 * @param of - null if it has none, undefined if that is not known.
 */
export function stateOf(
  of: Pick<Reservation, 'state'> | null | undefined,
): Reservation['state'] | (typeof NO_STATES)[number] {
  return of === null ? 'none' : (of?.state ?? 'unknown');
}

/** What enforces a reservation; without one, nothing does. */
export function enforcerOf(
  of: Pick<Reservation, 'enforced'> | null | undefined,
): string {
  return of?.enforced?.backend ?? 'nothing';
}
