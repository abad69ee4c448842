// SPDX-License-Identifier: Apache-2.0

// Fields of the form for an override, and the request that they make.

import type { Reservation, Wanted } from '../api/types';
import { runtimeUs, sharePpm } from './shares';

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
  if (period === null || period < 1 || period > 1000) {
    faults.period = '1 ms to 1000 ms';
  }
  return faults;
}

/** What the form holds, as text. */
export interface Draft extends ShareDraft {
  mode: string;
  backend: string;
  weight: string;
  ioCharging: string;
  maxError: string;
  balloon: string;
}

const optional = (value: string | number | null) =>
  value === null ? '' : String(value);

/** The form of what is desired now. */
export function draftOf(one: Reservation | null): Draft {
  const share = one === null ? null : sharePpm(one.runtime_us, one.period_us);
  return {
    share: share === null ? '' : String(share / 10_000),
    period: String((one?.period_us ?? 20_000) / 1000),
    mode: one?.mode ?? 'capped',
    backend: one?.backend ?? '',
    weight: optional(one?.weight ?? null),
    ioCharging: optional(one?.io_charging ?? null),
    maxError: optional(one?.max_alloc_error_pct ?? null),
    balloon: optional(one?.balloon ?? null),
  };
}

/** What is wrong with a draft, by field. */
export type Faults = Partial<Record<keyof Draft, string>>;

/** Check a draft as far as a page can; the service checks all of it. */
export function faultsOf(draft: Draft): Faults {
  const faults: Faults = shareFaults(draft);
  if (draft.weight !== '' && !/^\d+$/.test(draft.weight.trim())) {
    faults.weight = 'a whole number, or empty for the flavor’s';
  }
  const most = draft.maxError === '' ? 1 : number(draft.maxError);
  if (most === null || most <= 0) {
    faults.maxError = 'more than 0 %, or empty for the flavor’s';
  }
  return faults;
}

/**
 * The fields that differ from what is desired now.
 *
 * @param now - null for an instance without a reservation.
 */
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
  if (now === null || draft.mode !== before.mode) {
    wanted.mode = draft.mode as Wanted['mode'];
  }
  if (draft.backend !== before.backend) {
    wanted.backend = choice<Wanted['backend']>(draft.backend);
  }
  if (draft.weight !== before.weight) {
    wanted.weight = number(draft.weight);
  }
  if (draft.ioCharging !== before.ioCharging) {
    wanted.io_charging = choice<Wanted['io_charging']>(draft.ioCharging);
  }
  if (draft.maxError !== before.maxError) {
    wanted.max_alloc_error_pct = number(draft.maxError);
  }
  if (draft.balloon !== before.balloon) {
    wanted.balloon = choice<Wanted['balloon']>(draft.balloon);
  }
  return wanted;
}

/**
 * The extra specs that stand for what an instance has, for an evaluation:
 * the API has no flavor's, and the draft overrides all that counts.
 */
export function evaluatedOverride(draft: Draft): Wanted {
  const wanted = changesOf(draft, null);
  for (const name of ['backend', 'weight', 'io_charging', 'balloon'] as const) {
    if (wanted[name] === null) {
      delete wanted[name];
    }
  }
  return wanted;
}

/** One of the options of a field; null for the flavor's. */
function choice<T>(text: string): T | null {
  return text === '' ? null : (text as T);
}

/** A number from a field; null when it holds none. */
export function number(text: string): number | null {
  const found = text.trim();
  if (found === '' || !/^[0-9]*\.?[0-9]+$/.test(found)) {
    return null;
  }
  return Number(found);
}
