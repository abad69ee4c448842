// SPDX-License-Identifier: Apache-2.0

// The form for an override, and the requests that it makes.

import { ApiError } from '../api/client';
import type { Reservation, ReservationCreate, Wanted } from '../api/types';
import { number } from './numbers';
import {
  FIELDS,
  FIELD_NAMES,
  type FieldDraft,
  fieldFault,
  fieldText,
  fieldValue,
} from './overrideFields';
import { DEFAULT_PERIOD_US, runtimeUs, sharePpm } from './shares';

/** What is reserved for each vCPU, as text. */
export interface ShareDraft {
  share: string;
  period: string;
}

export type ShareFaults = Partial<Record<keyof ShareDraft, string>>;

/** Check the share, in percent, and the period, in ms. */
export function shareFaults(draft: ShareDraft): ShareFaults {
  const faults: ShareFaults = {};
  const share = number(draft.share);
  if (share === null || share <= 0 || share > 100) {
    faults.share = 'more than 0 % and at most 100 % of a CPU';
  }
  const period = number(draft.period);
  if (period === null || period < 0.1 || period > 4194.304) {
    faults.period = '0.1 ms to 4194.304 ms';
  }
  return faults;
}

/** What the form holds, as text. */
export interface Draft extends ShareDraft, FieldDraft {}

/** The form of what is desired now. */
export function draftOf(one: Reservation | null): Draft {
  const share = one === null ? null : sharePpm(one.runtime_us, one.period_us);
  return {
    share: share === null ? '' : String(share / 10_000),
    period: String((one?.period_us ?? DEFAULT_PERIOD_US) / 1000),
    ...(Object.fromEntries(
      FIELD_NAMES.map((name) => [name, fieldText(one?.[name] ?? null)]),
    ) as FieldDraft),
    mode: one?.mode ?? 'capped',
  };
}

const DRAFT_NAMES: readonly (keyof Draft)[] = [
  'share',
  'period',
  ...FIELD_NAMES,
];

/** What a field is called in the form. */
export function fieldTitle(name: keyof Draft): string {
  return name === 'share' || name === 'period'
    ? { share: 'Share', period: 'Period' }[name]
    : FIELDS[name].title;
}

/** The fields of the form in which what is desired differs, in its order. */
export function differing(
  before: Reservation | null,
  after: Reservation | null,
): (keyof Draft)[] {
  const [one, other] = [draftOf(before), draftOf(after)];
  return DRAFT_NAMES.filter((name) => one[name] !== other[name]);
}

/** Whether a change that is based on what was desired would be refused. */
export function isOutdated(
  base: Reservation | null,
  now: Reservation | null,
): boolean {
  return (
    base?.generation !== now?.generation || differing(base, now).length > 0
  );
}

/**
 * Base a draft on what is desired now: fields that its user has changed stay
 * as they are, the others are as they are desired now.
 */
export function rebased(
  draft: Draft,
  base: Reservation | null,
  now: Reservation | null,
): Draft {
  const [before, after] = [draftOf(base), draftOf(now)];
  return Object.fromEntries(
    DRAFT_NAMES.map((name) => [
      name,
      draft[name] === before[name] ? after[name] : draft[name],
    ]),
  ) as unknown as Draft;
}

/** What is wrong with a draft, by field. */
export type Faults = Partial<Record<keyof Draft, string>>;

/**
 * Check a draft as far as a page can; the service checks all of it.
 *
 * @param vcpus - of the instance.
 */
export function faultsOf(draft: Draft, vcpus: number): Faults {
  const faults: Faults = shareFaults(draft);
  for (const name of FIELD_NAMES) {
    const fault = fieldFault(
      name,
      draft[name],
      name === 'min_vcpus' ? vcpus : undefined,
    );
    if (fault !== undefined) {
      faults[name] = fault;
    }
  }
  if (draft.balloon === 'off' && draft.min_vcpus.trim() !== '') {
    faults.min_vcpus ??= 'empty while ballooning is off';
  }
  return faults;
}

/**
 * The fields that differ from what is desired now.
 *
 * @param now - null for an instance without a reservation.
 */
export function changesOf(
  draft: Draft,
  now: null,
): Wanted & Pick<ReservationCreate, 'runtime_us'>;
export function changesOf(draft: Draft, now: Reservation | null): Wanted;
export function changesOf(draft: Draft, now: Reservation | null): Wanted {
  const before = draftOf(now);
  const wanted: Wanted = {};
  const periodUs = Math.round((number(draft.period) ?? 0) * 1000);
  const runtime = runtimeUs(number(draft.share) ?? 0, periodUs);
  if (now === null || runtime !== now.runtime_us) {
    wanted.runtime_us = runtime;
  }
  if (now === null || periodUs !== now.period_us) {
    wanted.period_us = periodUs;
  }
  for (const name of FIELD_NAMES) {
    const value = fieldValue(name, draft[name]);
    if (
      value !== fieldValue(name, before[name]) ||
      (now === null && name === 'mode')
    ) {
      Object.assign(wanted, { [name]: value });
    }
  }
  return wanted;
}

/**
 * The override that is evaluated for a draft: all that it sets.
 *
 * The API does not have the extra specs of the flavor, and the draft
 * overrides all that counts. What needs ballooning is evaluated as for a
 * flavor that allows it.
 */
export function evaluatedOverride(draft: Draft): Wanted {
  const wanted = changesOf(draft, null);
  return wanted.min_vcpus === undefined
    ? wanted
    : { balloon: 'auto', ...wanted };
}

/** Codes of answers to changes that another one came before. */
const CONFLICTS: readonly string[] = [
  'vsched.request.generation_conflict',
  'vsched.reservation.exists',
];

/** Whether a change was refused since another one came before it. */
export function isConflict(error: Error | null): boolean {
  return error instanceof ApiError && CONFLICTS.includes(error.code);
}

/** Codes of answers to a withdrawal that found nothing to withdraw. */
const NOTHING_LEFT: readonly string[] = [
  'vsched.balloon.order_not_found',
  'vsched.reservation.override_not_found',
];

/**
 * Whether what a user withdraws was withdrawn before: no failure.
 *
 * @param error - of the request to withdraw it. One that names a generation
 *   is refused as a conflict before it is known that there is nothing.
 * @param gone - whether there is nothing, as was read after the request.
 */
export function wasWithdrawn(error: Error | null, gone: boolean): boolean {
  return (
    (isConflict(error) && gone) ||
    (error instanceof ApiError &&
      error.status === 404 &&
      NOTHING_LEFT.includes(error.code))
  );
}
