// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import { ApiError } from '../api/client';
import type { Reservation } from '../api/types';
import {
  changesOf,
  differing,
  draftOf,
  evaluatedOverride,
  faultsOf,
  isConflict,
  isOutdated,
  rebased,
  shareFaults,
  wasWithdrawn,
} from './changes';

const VCPUS = 4;

const held = {
  runtime_us: 12_000,
  period_us: 20_000,
  mode: 'capped',
  backend: null,
  weight: 2,
  io_charging: null,
  max_alloc_error_pct: null,
  balloon: null,
  min_vcpus: null,
  comm_aware: null,
} as Reservation;

/** With a value in each field. */
const full = {
  ...held,
  mode: 'work_conserving',
  backend: 'deadline',
  io_charging: 'charge',
  max_alloc_error_pct: 0.5,
  balloon: 'auto',
  min_vcpus: 3,
  comm_aware: false,
} as Reservation;

it('changes nothing by itself', () => {
  for (const one of [held, full]) {
    expect(changesOf(draftOf(one), one)).toEqual({});
    expect(faultsOf(draftOf(one), VCPUS)).toEqual({});
  }
});

it('sends what differs, and null for the flavor’s', () => {
  const draft = { ...draftOf(held), share: '30', weight: '', backend: 'cfs' };
  expect(changesOf(draft, held)).toEqual({
    runtime_us: 6_000,
    weight: null,
    backend: 'cfs',
  });
  expect(changesOf(draftOf(held), full)).toEqual({
    mode: 'capped',
    backend: null,
    io_charging: null,
    max_alloc_error_pct: null,
    balloon: null,
    min_vcpus: null,
    comm_aware: null,
  });
});

it('sends each field in the type that the API has for it', () => {
  expect(changesOf(draftOf(full), held)).toEqual({
    mode: 'work_conserving',
    backend: 'deadline',
    io_charging: 'charge',
    max_alloc_error_pct: 0.5,
    balloon: 'auto',
    min_vcpus: 3,
    comm_aware: false,
  });
  expect(
    changesOf({ ...draftOf(full), comm_aware: 'true' }, full),
  ).toEqual({ comm_aware: true });
});

it('compares numbers, not how they are written', () => {
  const draft = { ...draftOf(full), weight: ' 02', max_alloc_error_pct: '.50' };
  expect(changesOf(draft, full)).toEqual({});
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
});

it('evaluates all that an override sets', () => {
  expect(evaluatedOverride(draftOf(held))).toEqual({
    runtime_us: 12_000,
    period_us: 20_000,
    mode: 'capped',
    weight: 2,
  });
  expect(evaluatedOverride(draftOf(full))).toEqual({
    runtime_us: 12_000,
    period_us: 20_000,
    mode: 'work_conserving',
    backend: 'deadline',
    weight: 2,
    io_charging: 'charge',
    max_alloc_error_pct: 0.5,
    balloon: 'auto',
    min_vcpus: 3,
    comm_aware: false,
  });
});

it('evaluates fewest vCPUs as in a flavor that allows ballooning', () => {
  const draft = { ...draftOf(full), balloon: '' };
  expect(evaluatedOverride(draft).balloon).toBe('auto');
  // What is sent leaves it to the flavor.
  expect(changesOf(draft, full)).toEqual({ balloon: null });
  expect(
    evaluatedOverride({ ...draft, min_vcpus: '' }).balloon,
  ).toBeUndefined();
});

it('names fields that are wrong', () => {
  const draft = {
    ...draftOf(null),
    share: '101',
    period: 'x',
    weight: '-1',
    max_alloc_error_pct: '0',
    min_vcpus: '1.5',
  };
  expect(Object.keys(faultsOf(draft, VCPUS)).sort()).toEqual([
    'max_alloc_error_pct',
    'min_vcpus',
    'period',
    'share',
    'weight',
  ]);
  expect(faultsOf({ ...draft, share: '' }, VCPUS).share).toBeDefined();
});

it('names what is accepted, with its unit', () => {
  const fault = (fields: object) =>
    faultsOf({ ...draftOf(held), ...fields }, VCPUS);
  expect(fault({ max_alloc_error_pct: '101' })).toEqual({
    max_alloc_error_pct: '0.1 to 100 %, or empty for the flavor’s',
  });
  expect(fault({ weight: '10001' })).toEqual({
    weight: 'a whole number, 1 to 10000, or empty for the flavor’s',
  });
  // The instance has no more.
  expect(fault({ min_vcpus: '5' })).toEqual({
    min_vcpus: 'a whole number, 1 to 4 vCPUs, or empty for the flavor’s',
  });
  expect(fault({ min_vcpus: '4' })).toEqual({});
});

it('has no fewest vCPUs while ballooning is off', () => {
  const draft = { ...draftOf(full), balloon: 'off' };
  expect(Object.keys(faultsOf(draft, VCPUS))).toEqual(['min_vcpus']);
  expect(faultsOf({ ...draft, min_vcpus: ' ' }, VCPUS)).toEqual({});
});

it('takes every period that a backend can have', () => {
  for (const period of ['0.1', '20', '4194.304']) {
    expect(shareFaults({ share: '50', period })).toEqual({});
  }
  for (const period of ['0.09', '4195', '']) {
    expect(shareFaults({ share: '50', period }).period).toBeDefined();
  }
});

it('knows what was withdrawn before', () => {
  const error = (status: number, code: string) =>
    new ApiError(status, [{ detail: 'it is not there', code }], null, null);
  for (const code of [
    'vsched.balloon.order_not_found',
    'vsched.reservation.override_not_found',
  ]) {
    expect(wasWithdrawn(error(404, code), false)).toBe(true);
    expect(wasWithdrawn(error(409, code), true)).toBe(false);
  }
  // Of a withdrawal that is based on what was there before.
  const conflict = error(409, 'vsched.request.generation_conflict');
  expect(wasWithdrawn(conflict, true)).toBe(true);
  expect(wasWithdrawn(conflict, false)).toBe(false);
  const unknown = error(404, 'vsched.instance.not_found');
  expect(wasWithdrawn(unknown, true)).toBe(false);
  expect(wasWithdrawn(new Error('no answer'), true)).toBe(false);
  expect(wasWithdrawn(null, true)).toBe(false);
});

it('keeps what was typed, and nothing else, over what is newer', () => {
  const typed = { ...draftOf(held), share: '12', weight: '' };
  const newer = { ...held, runtime_us: 3_000, period_us: 10_000, weight: 7 };
  const draft = rebased(typed, held, newer);
  expect(draft).toEqual({ ...typed, period: '10' });
  // Fields that nobody typed into are not sent as they were before.
  expect(changesOf(draft, newer)).toEqual({ runtime_us: 1_200, weight: null });
  expect(rebased(draftOf(held), held, full)).toEqual(draftOf(full));
  expect(rebased(typed, held, held)).toEqual(typed);
});

it('keeps what was typed when the reservation came or went', () => {
  const typed = { ...draftOf(null), share: '12' };
  expect(rebased(typed, null, held)).toEqual({ ...draftOf(held), share: '12' });
  expect(rebased({ ...draftOf(held), share: '12' }, held, null)).toEqual(typed);
});

it('names the fields that were changed', () => {
  expect(differing(held, held)).toEqual([]);
  expect(differing(held, { ...held, weight: 3, runtime_us: 1_000 })).toEqual([
    'share',
    'weight',
  ]);
  expect(differing(null, { ...held, weight: null })).toEqual(['share']);
});

it('is outdated by a change of what is desired only', () => {
  const first = { ...held, generation: 1 };
  expect(isOutdated(first, { ...first, state: 'applied' })).toBe(false);
  expect(isOutdated(first, { ...first, generation: 2 })).toBe(true);
  // A flavor has no generation.
  expect(isOutdated(first, { ...first, runtime_us: 1 })).toBe(true);
  expect(isOutdated(null, first)).toBe(true);
  expect(isOutdated(first, null)).toBe(true);
  expect(isOutdated(null, null)).toBe(false);
});

it('takes what another user was faster with for a conflict', () => {
  const refused = (status: number, code: string) =>
    new ApiError(status, [{ detail: '', code }], null, null);
  expect(
    [
      refused(409, 'vsched.request.generation_conflict'),
      refused(412, 'vsched.request.generation_conflict'),
      refused(409, 'vsched.reservation.exists'),
      refused(409, 'vsched.instance.absent'),
      null,
    ].map(isConflict),
  ).toEqual([true, true, true, false, false]);
});
