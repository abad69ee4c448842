// SPDX-License-Identifier: Apache-2.0

// Who uses the page, and what that user may do.

import { queryOptions } from '@tanstack/react-query';

import { type Client, pollDelay } from '../api/client';

/** Rights change seldom. */
const SESSION_MS = 60_000;
/** Nothing is shown without a session: the first pause is short. */
const FIRST_MS = 1_000;

/** How the session is asked for, and how often. */
export function sessionOf(client: Client) {
  return queryOptions({
    queryKey: ['session'],
    queryFn: async ({ signal }) =>
      (await client.call('GET', '/ui/session', { signal })).session,
    // Whatever the failure is: a proxy answers in many ways while the API
    // is being started.
    refetchInterval: ({ state: { data, errorUpdateCount } }) =>
      data === undefined && errorUpdateCount > 0
        ? pollDelay(FIRST_MS, errorUpdateCount)
        : pollDelay(SESSION_MS, client.connection.failures),
  });
}
