// SPDX-License-Identifier: Apache-2.0

import type { Host, Snapshot, SnapshotHost } from '../api/types';

/** What schedulers know of all hosts: a copy that changes are added to. */
export interface Fleet {
  version: number;
  hosts: Map<string, SnapshotHost>;
  down: Set<string>;
}

/** Add an answer to a copy; returns a new one. */
export function updated(known: Fleet | null, answer: Snapshot): Fleet {
  const hosts = new Map(answer.full ? [] : known?.hosts);
  for (const name of answer.removed) {
    hosts.delete(name);
  }
  for (const host of answer.hosts) {
    hosts.set(host.name, host);
  }
  return { version: answer.version, hosts, down: new Set(answer.down) };
}

/** Whether the agent of a host does not report, as recently as it is known. */
export function isDown(
  host: Pick<Host, 'name' | 'state'>,
  fleet: Fleet | undefined,
): boolean {
  return fleet === undefined ? host.state === 'down' : fleet.down.has(host.name);
}
