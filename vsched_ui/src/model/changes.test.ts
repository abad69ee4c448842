// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import type { Reservation } from '../api/types';
import { changesOf, draftOf, evaluatedOverride, faultsOf } from './changes';

const held = {
  runtime_us: 12_000,
  period_us: 20_000,
  mode: 'capped',
  backend: null,
  weight: 2,
  io_charging: null,
  max_alloc_error_pct: null,
  balloon: null,
} as Reservation;

it('changes nothing by itself', () => {
  expect(changesOf(draftOf(held), held)).toEqual({});
  expect(faultsOf(draftOf(held))).toEqual({});
});

it('sends what differs, and null for the flavor’s', () => {
  const draft = { ...draftOf(held), share: '30', weight: '', backend: 'cfs' };
  expect(changesOf(draft, held)).toEqual({
    runtime_us: 6_000,
    weight: null,
    backend: 'cfs',
  });
});

it('keeps the share when the period changes', () => {
  const draft = { ...draftOf(held), period: '10' };
  expect(changesOf(draft, held)).toEqual({
    runtime_us: 6_000,
    period_us: 10_000,
  });
});

it('names all of a new reservation', () => {
  const draft = { ...draftOf(null), share: '25' };
  expect(changesOf(draft, null)).toEqual({
    runtime_us: 5_000,
    period_us: 20_000,
    mode: 'capped',
  });
  expect(evaluatedOverride(draftOf(held))).toEqual({
    runtime_us: 12_000,
    period_us: 20_000,
    mode: 'capped',
    weight: 2,
  });
});

it('names fields that are wrong', () => {
  const draft = { ...draftOf(null), share: '101', period: 'x', weight: '-1' };
  expect(Object.keys(faultsOf({ ...draft, maxError: '0' }))).toEqual([
    'share',
    'period',
    'weight',
    'maxError',
  ]);
  expect(faultsOf({ ...draft, share: '' }).share).toBeDefined();
});
