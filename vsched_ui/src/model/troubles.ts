// SPDX-License-Identifier: Apache-2.0

// What is wrong in the fleet, and the lists that have all of it.

import type { Host, Job, Reservation } from '../api/types';
import { type Fleet, isDown } from './fleet';
import type { Identity } from './identity';
import { count, fixed } from './units';

export type Kind =
  | 'down'
  | 'problem'
  | 'no backend'
  | 'refused'
  | 'degraded'
  | 'pending'
  | 'placement'
  | 'finding'
  | 'contradiction'
  | 'job';

interface Shape {
  severity: 'error' | 'warning';
  one: string;
  many: string;
  /** The list with all of them, and with nothing else. */
  to: string;
}

/** In the order that they are shown in: errors first. */
const KINDS: Readonly<Record<Kind, Shape>> = {
  down: {
    severity: 'error',
    one: 'host that does not report',
    many: 'hosts that do not report',
    to: '/hosts?hosts.state=down',
  },
  problem: {
    severity: 'error',
    one: 'host with a problem',
    many: 'hosts with a problem',
    to: '/hosts?hosts.trouble=problem',
  },
  'no backend': {
    severity: 'error',
    one: 'host without a usable backend',
    many: 'hosts without a usable backend',
    to: '/hosts?hosts.trouble=no+backend',
  },
  refused: {
    severity: 'error',
    one: 'refused reservation',
    many: 'refused reservations',
    to: '/reservations?reservations.state=refused',
  },
  degraded: {
    severity: 'warning',
    one: 'degraded reservation',
    many: 'degraded reservations',
    to: '/reservations?reservations.state=degraded',
  },
  pending: {
    severity: 'warning',
    one: 'reservation without an answer',
    many: 'reservations without an answer',
    to: '/reservations?reservations.state=pending',
  },
  placement: {
    severity: 'warning',
    one: 'host with a failure of placement',
    many: 'hosts with a failure of placement',
    to: '/hosts?hosts.placement=failed',
  },
  finding: {
    severity: 'warning',
    one: 'host with a problem that its doctor found',
    many: 'hosts with a problem that their doctor found',
    to: '/hosts?hosts.trouble=finding',
  },
  contradiction: {
    severity: 'warning',
    one: 'contradiction',
    many: 'contradictions',
    to: '/hosts?hosts.trouble=contradiction',
  },
  job: {
    severity: 'warning',
    one: 'failed job',
    many: 'failed jobs',
    to: '/jobs?jobs.state=failed',
  },
};

const ORDER = Object.keys(KINDS) as readonly Kind[];

/** Kinds of troubles of hosts that no other column of their list has. */
export const HOST_KINDS: readonly Kind[] = [
  'problem',
  'no backend',
  'finding',
  'contradiction',
];

/** A reservation is in trouble once it is pending for longer. */
const PENDING_LONG_MS = 60_000;
/** A job that failed earlier is no trouble any more. */
const JOB_RECENT_MS = 86_400_000;

/** One thing that is wrong, of a host or of an instance. */
export interface Trouble {
  key: string;
  kind: Kind;
  subject: { host: string | null } | { instance: Identity };
  detail: string;
}

/** What is wrong with a host. */
export function hostTroubles(host: Host, down: boolean): Trouble[] {
  const found: Trouble[] = [];
  const add = (kind: Kind, detail: string, key: string = kind) =>
    found.push({
      key: `${host.name} ${key}`,
      kind,
      subject: { host: host.name },
      detail,
    });
  if (down) {
    add('down', 'its agent does not report');
  }
  if (host.problem !== null) {
    add('problem', host.problem);
  }
  if (host.backends.length > 0 && host.backends.every((one) => !one.usable)) {
    add('no backend', 'no backend can enforce reservations');
  }
  if (host.placement?.state === 'failed') {
    add('placement', `placement: ${host.placement.detail}`);
  }
  const problems = host.finding_counts?.problem ?? 0;
  if (problems > 0) {
    add('finding', `the doctor found ${count(problems, 'problem')}`);
  }
  host.verification?.contradictions.forEach((one, index) =>
    add('contradiction', one.detail, `${one.code} ${index}`),
  );
  return found;
}

/** What is wrong with a reservation; null if nothing is. */
function reservationTrouble(one: Reservation, now: number): Trouble | null {
  const trouble = {
    key: `reservation ${one.instance_uuid}`,
    subject: { instance: one },
  };
  if (one.state === 'refused' || one.state === 'degraded') {
    return {
      ...trouble,
      kind: one.state,
      detail: `reservation ${one.state}: ${one.detail ?? one.code ?? ''}`,
    };
  }
  if (
    one.state === 'pending' &&
    one.since !== null &&
    now - Date.parse(one.since) >= PENDING_LONG_MS
  ) {
    return {
      ...trouble,
      kind: 'pending',
      detail: 'its agent has not answered for more than a minute',
    };
  }
  // Its state may have changed since a list of others was read.
  return null;
}

/** Everything that is wrong. */
export function troublesOf(
  of: {
    hosts: readonly Host[];
    fleet: Fleet | undefined;
    reservations: readonly Reservation[];
    /** That failed. */
    jobs: readonly Job[];
  },
  now: number,
): Trouble[] {
  // Lists of several states may both have one whose state has just changed.
  const reservations = new Map(
    of.reservations.map((one) => [one.instance_uuid, one]),
  );
  return [
    ...of.hosts.flatMap((host) => hostTroubles(host, isDown(host, of.fleet))),
    ...[...reservations.values()]
      .map((one) => reservationTrouble(one, now))
      .filter((one) => one !== null),
    ...of.jobs
      .filter(
        (job) =>
          job.updated_at !== null &&
          now - Date.parse(job.updated_at) < JOB_RECENT_MS,
      )
      .map((job) => ({
        key: `job ${job.uuid}`,
        kind: 'job' as const,
        subject: { host: job.host },
        detail: `${job.kind} failed: ${job.detail}`,
      })),
  ];
}

/** The troubles of one kind, as far as there is room for them. */
export interface Group {
  kind: Kind;
  severity: 'error' | 'warning';
  shown: readonly Trouble[];
  /** The others, in words, and where all are; null if there are none. */
  more: { text: string; to: string } | null;
}

/**
 * Group troubles by their kind, the errors first.
 *
 * @param most - how many are shown in all. Kinds with many of them leave room
 *   for the others.
 */
export function grouped(troubles: readonly Trouble[], most: number): Group[] {
  const groups = ORDER.map((kind) => ({
    kind,
    all: troubles.filter((one) => one.kind === kind),
  })).filter(({ all }) => all.length > 0);
  const counts = deal(
    groups.map(({ all }) => all.length),
    most,
  );
  return groups.map(({ kind, all }, index) => {
    const { severity, one, many, to } = KINDS[kind];
    const shown = all.slice(0, counts[index]);
    const left = all.length - shown.length;
    return {
      kind,
      severity,
      shown,
      more:
        left === 0
          ? null
          : {
              text: `and ${fixed(left, 0)} more ${left === 1 ? one : many}`,
              to,
            },
    };
  });
}

/** Deal out what there is room for, one by one, to those who need it. */
function deal(needed: readonly number[], room: number): number[] {
  const dealt = needed.map(() => 0);
  let left = room;
  for (let round = 1; left > 0 && needed.some((one) => one >= round); round += 1) {
    needed.forEach((one, index) => {
      if (one >= round && left > 0) {
        dealt[index] = round;
        left -= 1;
      }
    });
  }
  return dealt;
}
