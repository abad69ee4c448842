// SPDX-License-Identifier: Apache-2.0

import { useMemo } from 'react';

import { useFleet, useFleetUsage, useHosts } from '../api/hooks';
import type { Bucket, Host } from '../api/types';
import { type Column, DataTable, type Facet } from '../components/DataTable';
import { Ago, Cpus, Meter, Percent, Unknown } from '../components/figures';
import { HostLink } from '../components/links';
import { Head } from '../components/Section';
import { NoHost, OutdatedNote, State } from '../components/states';
import { type Fleet, isDown } from '../model/fleet';
import { gotMcpu, withheldOf } from '../model/series';
import { usedPpm } from '../model/shares';
import { HOST_KINDS, hostTroubles } from '../model/troubles';

interface Row {
  host: Host;
  state: 'up' | 'down';
  admitted: number | null;
  usage: Bucket | undefined;
  /** Why there is no usage, if there is none. */
  why: string;
}

const FACETS: readonly Facet<Row>[] = [
  {
    key: 'state',
    title: 'State',
    value: (row) => row.state,
    options: ['up', 'down'],
  },
  {
    key: 'backend',
    title: 'Backend',
    value: (row) =>
      row.host.backends.filter((one) => one.usable).map((one) => one.name),
    options: ['deadline', 'cfs', 'rtds', 'credit2', 'credit'],
  },
  {
    key: 'placement',
    title: 'Placement',
    value: (row) => row.host.placement?.state ?? 'unknown',
    options: ['synced', 'waiting', 'failed', 'off', 'unknown'],
  },
  {
    key: 'trouble',
    title: 'Trouble',
    value: (row) =>
      hostTroubles(row.host, row.state === 'down').map((one) => one.kind),
    options: HOST_KINDS,
  },
];

function rowsOf(
  hosts: readonly Host[] | undefined,
  fleet: Fleet | undefined,
  usage: ReadonlyMap<string, Bucket> | undefined,
  failed: boolean,
): Row[] | undefined {
  const why =
    usage !== undefined
      ? 'no usage in the last minutes'
      : failed
        ? 'the usage could not be read'
        : 'the usage is not read yet';
  return hosts?.map((host) => ({
    host,
    // The snapshot is newer than the list.
    state: isDown(host, fleet) ? 'down' : 'up',
    admitted: fleet?.hosts.get(host.name)?.admitted_mcpu ?? host.admitted_mcpu,
    usage: usage?.get(host.name),
    why,
  }));
}

const COLUMNS: readonly Column<Row>[] = [
  {
    key: 'name',
    title: 'Host',
    value: (row) => row.host.name,
    render: (row) => <HostLink name={row.host.name} />,
  },
  {
    key: 'state',
    title: 'State',
    value: (row) => row.state,
    render: (row) => (
      <State
        of={row.host.problem === null ? row.state : 'failed'}
        {...(row.host.problem === null ? {} : { title: row.host.problem })}
      />
    ),
  },
  {
    key: 'capacity',
    title: 'Capacity',
    numeric: true,
    value: (row) => row.host.capacity_mcpu,
    render: (row) => <Cpus mcpu={row.host.capacity_mcpu} />,
    help: 'What reservations may use in total, as the kernel admits it.',
  },
  {
    key: 'reserved',
    title: 'Reserved',
    value: (row) => usedPpm(row.admitted, row.host.capacity_mcpu),
    numeric: true,
    render: (row) => (
      <Meter
        used={row.admitted}
        total={row.host.capacity_mcpu}
        label={`Reserved of ${row.host.name}`}
      />
    ),
    help: 'What reservations use of the capacity. Sorted by that part.',
  },
  {
    key: 'got',
    title: 'Got',
    numeric: true,
    value: (row) => (row.usage === undefined ? null : gotMcpu(row.usage)),
    render: (row) =>
      row.usage === undefined ? (
        <Unknown why={row.why} />
      ) : (
        <Cpus mcpu={gotMcpu(row.usage)} />
      ),
    help: 'CPU time that instances with a reservation used in the newest minute.',
  },
  {
    key: 'withheld',
    title: 'Withheld',
    numeric: true,
    value: (row) => (row.usage === undefined ? null : withheldOf(row.usage)),
    render: (row) =>
      row.usage === undefined ? (
        <Unknown why={row.why} />
      ) : (
        <Percent ppm={withheldOf(row.usage)} />
      ),
    help: 'Of what is reserved: the part that instances were ready to use and did not get, at most.',
  },
  {
    key: 'instances',
    title: 'Instances',
    numeric: true,
    value: (row) => row.host.instances,
  },
  {
    key: 'backends',
    title: 'Backends',
    value: (row) => backends(row.host),
  },
  {
    key: 'placement',
    title: 'Placement',
    value: (row) => row.host.placement?.state ?? null,
    render: (row) => <State of={row.host.placement?.state ?? null} />,
  },
  {
    key: 'kernel',
    title: 'Kernel',
    value: (row) => row.host.kernel,
  },
  {
    key: 'report',
    title: 'Last report',
    value: (row) => row.host.last_report_at,
    render: (row) => <Ago at={row.host.last_report_at} />,
  },
];

export function Hosts() {
  const hosts = useHosts();
  const fleet = useFleet();
  const usage = useFleetUsage();
  const unread = usage.data === undefined ? usage.error : null;
  const rows = useMemo(
    () => rowsOf(hosts.data, fleet.data, usage.data, unread !== null),
    [hosts.data, fleet.data, usage.data, unread],
  );
  return (
    <>
      <Head title="Hosts" />
      {unread !== null && (
        <p className="vs-note" role="status">
          The CPU time that instances got could not be read: {unread.message}
        </p>
      )}
      <OutdatedNote of={usage} what="The CPU time that instances got" />
      <OutdatedNote of={fleet} what="What is reserved" />
      <DataTable
        id="hosts"
        label="Hosts"
        rows={rows}
        error={hosts.error}
        readAt={hosts.readAt}
        retry={hosts.refetch}
        incomplete={!hosts.complete}
        columns={COLUMNS}
        facets={FACETS}
        rowKey={(row) => row.host.name}
        empty={<NoHost />}
      />
    </>
  );
}

function backends(host: Host): string {
  return (
    host.backends
      .filter((one) => one.usable)
      .map((one) => one.name)
      .join(', ') || 'none'
  );
}
