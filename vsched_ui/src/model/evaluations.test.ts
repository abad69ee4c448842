// SPDX-License-Identifier: Apache-2.0

import { expect, test } from 'vitest';

import type { EvaluatedHost, Reservation } from '../api/types';
import { changeOf } from './evaluations';

function host(demand: number, cause: string | null): EvaluatedHost {
  return {
    fits: cause === null,
    demand_mcpu: demand,
    free_mcpu: 100,
    problems: cause === null ? [] : [{ cause, detail: '', unknown: false }],
  } as unknown as EvaluatedHost;
}

function now(backend: string): Reservation {
  return { enforced: { backend, bandwidth_mcpu: 800 } } as Reservation;
}

test('what is held counts for a change', () => {
  expect(changeOf(host(900, 'capacity'), now('deadline'))).toEqual({
    held: 800,
    more: 100,
    fits: true,
  });
  expect(changeOf(host(901, 'capacity'), now('rtds')).fits).toBe(false);
});

test('a quota holds nothing of the capacity', () => {
  expect(changeOf(host(800, 'capacity'), now('cfs'))).toEqual({
    held: 0,
    more: 800,
    fits: false,
  });
  expect(changeOf(host(50, null), null)).toEqual({
    held: 0,
    more: 50,
    fits: true,
  });
});

test('other problems stay', () => {
  expect(changeOf(host(10, 'error'), now('deadline')).fits).toBe(false);
});
