// SPDX-License-Identifier: Apache-2.0

import { CheckCircleIcon } from '@patternfly/react-icons/dist/esm/icons/check-circle-icon';
import { Fragment, useMemo } from 'react';
import { Link } from 'react-router';

import { oldest } from '../api/failures';
import type { Collection } from '../api/hooks';
import type { Host, Job, Reservation } from '../api/types';
import type { Fleet } from '../model/fleet';
import { nameOf } from '../model/identity';
import { type Trouble, grouped, troublesOf } from '../model/troubles';
import { useNow } from './figures';
import { HostLink, InstanceLink } from './links';
import { Failure, Loading, NoHost, OutdatedNote, State } from './states';

/** How many are shown; the lists that they link to have the others. */
const MOST = 12;

/** What is wrong in the fleet. */
export function Troubles({
  hosts,
  fleet,
  reservations,
  jobs,
  lists,
}: {
  hosts: readonly Host[] | undefined;
  fleet: Fleet | undefined;
  reservations: readonly Reservation[];
  jobs: readonly Job[];
  /** All that was read for it. */
  lists: readonly Pick<
    Collection<unknown>,
    'data' | 'error' | 'readAt' | 'complete' | 'refetch'
  >[];
}) {
  const now = useNow(5_000);
  const groups = useMemo(
    () =>
      grouped(
        troublesOf({ hosts: hosts ?? [], fleet, reservations, jobs }, now),
        MOST,
      ),
    [hosts, fleet, reservations, jobs, now],
  );
  const failed = lists.filter((one) => one.error !== null);
  const again = () => failed.map((one) => one.refetch());
  if (groups.length === 0) {
    // That nothing is wrong is known only if all of it was read.
    if (failed[0]?.error) {
      return <Failure error={failed[0].error} retry={again} />;
    }
    if (!lists.every((one) => one.complete)) {
      return <Loading lines={3} />;
    }
    return hosts?.length === 0 ? (
      <NoHost />
    ) : (
      <p className="vs-well">
        <CheckCircleIcon /> Nothing: all hosts report, and every reservation is
        held.
      </p>
    );
  }
  const missing = failed.find((one) => !one.complete)?.error;
  return (
    <>
      {/* What an incomplete list lacks is stated below. */}
      {!missing && (
        <OutdatedNote
          of={{
            data: groups,
            error: failed[0]?.error ?? null,
            readAt: oldest(...failed),
          }}
          what="What is wrong"
        />
      )}
      <ul className="vs-troubles">
        {groups.map(({ kind, severity, shown, more }) => (
          <Fragment key={kind}>
            {shown.map((one) => (
              <li key={one.key}>
                <State of={severity} />{' '}
                <span className="vs-troubles__what">
                  <Subject of={one.subject} />
                </span>{' '}
                <span className="vs-troubles__detail">{one.detail}</span>
              </li>
            ))}
            {more !== null && (
              <li>
                <Link to={more.to} style={{ gridColumn: '2 / -1' }}>
                  {more.text}
                </Link>
              </li>
            )}
          </Fragment>
        ))}
      </ul>
      {missing && (
        <>
          <p className="vs-small" role="status">
            There may be more: not all of it could be read.
          </p>
          <Failure error={missing} retry={again} />
        </>
      )}
    </>
  );
}

function Subject({ of }: { of: Trouble['subject'] }) {
  return 'host' in of ? (
    <HostLink name={of.host} />
  ) : (
    <InstanceLink uuid={of.instance.instance_uuid} name={nameOf(of.instance)} />
  );
}
