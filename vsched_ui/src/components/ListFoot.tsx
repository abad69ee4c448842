// SPDX-License-Identifier: Apache-2.0

import { Button } from '@patternfly/react-core';
import { type ReactNode, useState } from 'react';

import type { Growing } from '../api/hooks';
import { type Pages, countRows } from '../api/pages';
import { useApi, useConnection } from '../app/api';
import { readOlder, reasonOf } from '../model/older';

/** What is below a list: what of it could not be read, and older rows. */
export function ListFoot<T>({
  found,
  name,
  noun,
  grows = true,
}: {
  found: Growing<T>;
  /** Of the list in answers. */
  name: string;
  /** What it lists. */
  noun: string;
  /** Whether its user may read older rows. */
  grows?: boolean;
}) {
  const { client } = useApi();
  const { failures } = useConnection(client);
  const [failure, setFailure] = useState<Error | null>(null);
  const [reading, setReading] = useState(false);
  const { data, error, more } = found;
  if (data === undefined) {
    return null;
  }
  const older = async () => {
    setReading(true);
    setFailure(
      await readOlder(data.length, async () => {
        const result = (await more?.()) as
          | { error: Error | null; data?: Pick<Pages, 'pages'> }
          | undefined;
        return {
          error: result?.error ?? null,
          rows: countRows(name, { pages: result?.data?.pages ?? [], next: null }),
        };
      }),
    );
    setReading(false);
  };
  return (
    <>
      {/* The banner says so if no part of the API answers. */}
      {error !== null && error !== failure && failures === 0 && (
        <Unread what={`The newest ${noun}`} error={error}>
          <Retry read={found.refetch} />
        </Unread>
      )}
      {grows && more !== null && (
        <>
          {failure !== null && (
            <Unread what={`Older ${noun}`} error={failure} />
          )}
          <Button
            variant="secondary"
            className="vs-read"
            isLoading={reading || found.fetching}
            isDisabled={reading || found.fetching}
            onClick={() => void older()}
          >
            {failure === null
              ? `Read older ${noun}`
              : `Try again to read older ${noun}`}
          </Button>
        </>
      )}
    </>
  );
}

/** That something could not be read, beside what was read before. */
function Unread({
  what,
  error,
  children,
}: {
  what: string;
  error: Error;
  children?: ReactNode;
}) {
  const { text, code } = reasonOf(error);
  return (
    <div className="vs-problems" role="alert">
      {what} could not be read: {text}
      {code !== '' && <code className="vs-code">{code}</code>} {children}
    </div>
  );
}

function Retry({ read }: { read: () => unknown }) {
  const [reading, setReading] = useState(false);
  const again = async () => {
    setReading(true);
    await read();
    setReading(false);
  };
  return (
    <Button
      variant="link"
      isInline
      className="vs-read"
      isDisabled={reading}
      onClick={() => void again()}
    >
      Try again
    </Button>
  );
}
