// SPDX-License-Identifier: Apache-2.0

import { SearchInput } from '@patternfly/react-core';
import { useEffect, useState } from 'react';

import { useAddressed } from './addressed';

/** Where the address of the browser has the server whose rows are read. */
export const SERVER = 'server';

/** Why there may be nothing about a server of some name. */
export const INCOMPLETE_NAME =
  'The name of a server is compared as a whole: no part of it is enough.';

/** Have the service return what is about one server only. */
export function ServerFilter({ label }: { label: string }) {
  const [server, setServer] = useAddressed(SERVER);
  const [typed, setTyped] = useState(server);
  useEffect(() => setTyped(server), [server]);
  return (
    <SearchInput
      className="vs-choice"
      aria-label={label}
      placeholder="Server: name or UUID"
      value={typed}
      inputProps={{ maxLength: 255 }}
      onChange={(_, value) => setTyped(value)}
      onSearch={(_, value) => setServer(value.trim())}
      onClear={() => {
        setTyped('');
        setServer('');
      }}
    />
  );
}
