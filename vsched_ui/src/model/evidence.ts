// SPDX-License-Identifier: Apache-2.0

// What hosts have measured of themselves, and what of it is in force.
//
// Schedulers use the certificates and prices that are in force; why there
// are none, and when a run was, is known from events and jobs.

import type { Event, Job, SnapshotHost } from '../api/types';
import type { Fleet } from './fleet';

/** What an overhead profile has a price of, by its name in the API. */
export const TERMS: Readonly<Record<string, string>> = {
  net_rx: 'packet received',
  net_tx: 'packet sent',
  disk_read: 'disk read',
  disk_write: 'disk write',
  wakeups: 'wakeup of a thread of the host',
  idle_s: 'second without I/O',
};

export type ByHost<T> = ReadonlyMap<string, T>;

/** The first of each host: the newest of a list that begins with them. */
export function firstByHost<T extends { host: string }>(
  rows: readonly T[],
): Map<string, T> {
  const found = new Map<string, T>();
  for (const row of rows) {
    if (!found.has(row.host)) {
      found.set(row.host, row);
    }
  }
  return found;
}

/** Whether measurements of a host count. */
export interface Status {
  state: 'in force' | 'withdrawn' | 'out of date' | 'poor fit' | 'none known';
  why: string;
}

const IN_FORCE: Status = { state: 'in force', why: '' };

/** Why the time of a run is not known. */
export const EXPIRED =
  'Events and jobs are kept for a while only: the run may be older.';

const NONE_KNOWN: Status = { state: 'none known', why: 'No run is known.' };

/** The newest events of each host about its error profiles. */
export interface ErrorHistory {
  measured: ByHost<Event>;
  withdrawn: ByHost<Event>;
  granted: ByHost<Event>;
}

function later(one: string, other: string | undefined): boolean {
  return other === undefined || Date.parse(one) > Date.parse(other);
}

/** Whether the certificates of a host are in force, and why not. */
export function statusOfCertificates(
  host: SnapshotHost,
  history: ErrorHistory,
): Status {
  if (host.certificates.length > 0) {
    return IN_FORCE;
  }
  const withdrawn = history.withdrawn.get(host.name);
  if (
    withdrawn !== undefined &&
    later(withdrawn.at, history.granted.get(host.name)?.at)
  ) {
    return { state: 'withdrawn', why: withdrawn.detail };
  }
  if (history.measured.has(host.name)) {
    return {
      state: 'out of date',
      why:
        'The newest run has no contended points, or the kernel, its tick, ' +
        'the number of CPUs or the checks of budgets are others now.',
    };
  }
  return NONE_KNOWN;
}

/** Certificates of one backend and period; null of a host that has none. */
export interface CertificateRow {
  host: string;
  status: Status;
  backend: string | null;
  period_us: number | null;
  shares_ppm: readonly number[];
  /** Of how many shares errors are bounded: few windows bound nothing. */
  bounded: number;
  /** The lowest bound, and the share that it is of. */
  worst: { lower_ppm: number; share_ppm: number } | null;
  confidence_ppm: number | null;
  measured_at: string | null;
  quick: boolean | null;
  complete: boolean | null;
}

/** A row for each certificate, and for each host without any. */
export function certificateRows(
  fleet: Fleet,
  history: ErrorHistory,
): CertificateRow[] {
  const found: CertificateRow[] = [];
  for (const host of fleet.hosts.values()) {
    const confidence = host.facts.policy?.confidence;
    const common = {
      host: host.name,
      status: statusOfCertificates(host, history),
      confidence_ppm:
        confidence === undefined ? null : Math.round(confidence * 1_000_000),
      ...runOf(history.measured.get(host.name)),
    };
    for (const one of host.certificates) {
      const bounds = one.lowers_ppm.flatMap((lower_ppm, index) =>
        lower_ppm === null
          ? []
          : { lower_ppm, share_ppm: one.shares_ppm[index] ?? 0 },
      );
      found.push({
        ...common,
        backend: one.backend,
        period_us: one.period_us,
        shares_ppm: one.shares_ppm,
        bounded: bounds.length,
        worst: bounds.reduce<CertificateRow['worst']>(
          (least, bound) =>
            least === null || bound.lower_ppm < least.lower_ppm ? bound : least,
          null,
        ),
      });
    }
    if (host.certificates.length === 0) {
      found.push({
        ...common,
        backend: null,
        period_us: null,
        shares_ppm: [],
        bounded: 0,
        worst: null,
      });
    }
  }
  return found;
}

function runOf(measured: Event | undefined) {
  if (measured === undefined) {
    return { measured_at: null, quick: null, complete: null };
  }
  const figures: Record<string, unknown> = measured.figures;
  const flag = (value: unknown) => (typeof value === 'boolean' ? value : null);
  return {
    // An agent reports a run when it can, which may be later.
    measured_at:
      typeof figures.finished_at === 'number'
        ? new Date(figures.finished_at * 1000).toISOString()
        : measured.at,
    quick: flag(figures.quick),
    complete: flag(figures.complete),
  };
}

/** The newest of each host about its overhead profiles. */
export interface OverheadHistory {
  poor: ByHost<Event>;
  done: ByHost<Job>;
}

/** Whether an event is about a run that was ordered, not about live use. */
export function ofBenchmark(event: Event): boolean {
  const figures: Record<string, unknown> = event.figures;
  return figures.source === 'benchmark';
}

/** Whether the prices of a host are in force, and why not. */
export function statusOfPrices(host: SnapshotHost, history: OverheadHistory): Status {
  if (host.prices_ns !== null) {
    return IN_FORCE;
  }
  const poor = history.poor.get(host.name);
  const done = history.done.get(host.name);
  // The event of a run comes after the job was ordered.
  if (poor !== undefined && later(poor.at, done?.created_at)) {
    return { state: 'poor fit', why: poor.detail };
  }
  if (done !== undefined) {
    return {
      state: 'out of date',
      why: 'The kernel, its tick or the number of CPUs are others now.',
    };
  }
  return NONE_KNOWN;
}

/** What I/O costs on a host. */
export interface PriceRow {
  host: string;
  status: Status;
  /** By term; empty of a host that has none in force. */
  prices_ns: Readonly<Record<string, number>>;
  /** When the newest job that measured them was done. */
  done_at: string | null;
}

export function priceRows(fleet: Fleet, history: OverheadHistory): PriceRow[] {
  return [...fleet.hosts.values()].map((host) => ({
    host: host.name,
    status: statusOfPrices(host, history),
    prices_ns: host.prices_ns ?? {},
    done_at: history.done.get(host.name)?.updated_at ?? null,
  }));
}
