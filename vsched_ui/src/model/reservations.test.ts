// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import type { Reservation } from '../api/types';
import { ENFORCERS, NO_STATES, STATES, enforcerOf, stateOf } from './reservations';

// The compiler takes no other value while a state has no filter.
const complete: [
  Exclude<Reservation['state'], (typeof STATES)[number]>,
] extends [never]
  ? true
  : false = true;

it('finds each instance by one state', () => {
  expect(complete).toBe(true);
  expect(STATES.map((state) => stateOf({ state }))).toEqual(STATES);
  expect([stateOf(null), stateOf(undefined)]).toEqual(NO_STATES);
});

it('finds each instance by what enforces its reservation', () => {
  const enforced = (backend: string) =>
    ({ enforced: { backend } }) as Reservation;
  expect(enforcerOf(enforced('cfs'))).toBe('cfs');
  expect(
    [{ enforced: null }, null, undefined].map(enforcerOf),
  ).toEqual(['nothing', 'nothing', 'nothing']);
  expect(ENFORCERS).toContain('nothing');
});
