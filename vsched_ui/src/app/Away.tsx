// SPDX-License-Identifier: Apache-2.0

import { Alert } from '@patternfly/react-core';
import { useEffect, useState } from 'react';

import type { Client } from '../api/client';
import { duration } from '../model/units';
import { useConnection } from './api';

/** Says that nothing new is shown, until the API answers again. */
export function Away({
  client,
  shown = true,
}: {
  client: Client;
  /** Whether anything is shown that becomes old. */
  shown?: boolean;
}) {
  const { failures, since, reason } = useConnection(client);
  const [now, setNow] = useState(Date.now);
  const away = failures > 0;
  useEffect(() => {
    if (!away) {
      return;
    }
    setNow(Date.now());
    const timer = window.setInterval(() => setNow(Date.now()), 1000);
    return () => window.clearInterval(timer);
  }, [away]);
  const title = 'The API does not answer.';
  return (
    <div aria-live="assertive">
      {away && (
        <Alert
          isInline
          variant="danger"
          className="vs-away"
          title={
            shown
              ? `${title} What is shown is ${duration((now - (since ?? now)) / 1000)} old or older.`
              : title
          }
        >
          {reason === title ? '' : `${reason} `}
          Reservations stay in force meanwhile. The page tries again by itself.
        </Alert>
      )}
    </div>
  );
}
