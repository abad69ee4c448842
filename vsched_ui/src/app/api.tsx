// SPDX-License-Identifier: Apache-2.0

import { createContext, useContext, useSyncExternalStore } from 'react';

import type { Client, Connection } from '../api/client';
import type { Session } from '../api/types';
import {
  POLICIES,
  type Readable,
  type Rights,
  allows,
  ownOnly,
} from '../model/rights';

/** What every view works with. */
export interface Api {
  client: Client;
  session: Session;
  /** What the user may read. */
  rights: Rights;
  /** Whether the policies allow an operation to the user. */
  may: (rule: string) => boolean;
  /** Forget the token; null where there is none. */
  signOut: (() => void) | null;
}

const Context = createContext<Api | null>(null);

export const ApiProvider = Context.Provider;

export function useApi(): Api {
  const found = useContext(Context);
  if (found === null) {
    throw new Error('there is no API here');
  }
  return found;
}

/** Whether the user may read something, of its own project at least. */
export function useMayRead(path: Readable): boolean {
  return allows(useApi().rights, POLICIES[path], false);
}

/** Whether what the user may read of something is of its own project only. */
export function useOwnOnly(path: Readable): boolean {
  return ownOnly(useApi().rights, POLICIES[path]);
}

export function useConnection(client: Client): Connection {
  return useSyncExternalStore(client.subscribe, () => client.connection);
}

/** Names of policies that decide about buttons. */
export const RULES = {
  auditHost: 'vsched:hosts:audit',
  cancelJob: 'vsched:jobs:update',
  changeBalloon: 'vsched:balloons:update',
  createReservation: 'vsched:reservations:create',
  measureError: 'vsched:profiles:create',
  measureOverhead: 'vsched:profiles:create_overhead',
  orderBalloon: 'vsched:balloons:create',
  removeOverride: 'vsched:reservations:delete',
  updateReservation: 'vsched:reservations:update',
  withdrawBalloon: 'vsched:balloons:delete',
} as const;

/** Any of them lets one change what is ordered of a balloon. */
export const BALLOON_RULES = [
  RULES.orderBalloon,
  RULES.changeBalloon,
  RULES.withdrawBalloon,
] as const;
