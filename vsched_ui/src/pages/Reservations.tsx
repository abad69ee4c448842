// SPDX-License-Identifier: Apache-2.0

import { useReservations } from '../api/hooks';
import type { Reservation } from '../api/types';
import { type Column, DataTable, type Facet } from '../components/DataTable';
import { Ago, Budget, Cpus, Percent } from '../components/figures';
import { identityColumns } from '../components/identity';
import { HostLink } from '../components/links';
import { Head } from '../components/Section';
import { Empty, State } from '../components/states';
import { ENFORCERS, STATES, enforcerOf } from '../model/reservations';
import { sharePpm } from '../model/shares';

const FACETS: readonly Facet<Reservation>[] = [
  {
    key: 'state',
    title: 'State',
    value: (row) => row.state,
    options: STATES,
  },
  {
    key: 'source',
    title: 'Source',
    value: (row) => row.source,
    options: ['metadata', 'override', 'none'],
  },
  {
    key: 'backend',
    title: 'Enforced by',
    value: enforcerOf,
    options: ENFORCERS,
  },
];

const COLUMNS: readonly Column<Reservation>[] = [
  ...identityColumns<Reservation>((row) => row),
  {
    key: 'host',
    title: 'Host',
    value: (row) => row.host,
    render: (row) => <HostLink name={row.host} />,
  },
  {
    key: 'state',
    title: 'State',
    value: (row) => row.state,
    render: (row) => <State of={row.state} title={row.detail ?? ''} />,
  },
  {
    key: 'share',
    title: 'Share',
    numeric: true,
    value: (row) => sharePpm(row.runtime_us, row.period_us),
    render: (row) => <Percent ppm={sharePpm(row.runtime_us, row.period_us)} />,
    help: 'What each vCPU is reserved of a CPU.',
  },
  {
    key: 'vcpus',
    title: 'vCPUs',
    numeric: true,
    value: (row) => row.vcpus,
  },
  {
    key: 'bandwidth',
    title: 'Reserved',
    numeric: true,
    value: (row) => row.bandwidth_mcpu,
    render: (row) => <Cpus mcpu={row.bandwidth_mcpu} />,
    help: 'Over all vCPUs.',
  },
  {
    key: 'enforced',
    title: 'Enforced',
    numeric: true,
    value: (row) => row.enforced?.bandwidth_mcpu,
    render: (row) => <Cpus mcpu={row.enforced?.bandwidth_mcpu} />,
    help: 'What the kernel was last seen to hold.',
  },
  {
    key: 'period',
    title: 'Runtime and period',
    value: (row) => row.period_us,
    render: (row) => (
      <Budget runtimeUs={row.runtime_us} periodUs={row.period_us} />
    ),
  },
  {
    key: 'mode',
    title: 'Mode',
    value: (row) => row.mode,
  },
  {
    key: 'backend',
    title: 'Backend',
    value: (row) => row.enforced?.backend ?? row.backend,
  },
  {
    key: 'source',
    title: 'Source',
    value: (row) => row.source,
    render: (row) => (row.source === 'metadata' ? 'flavor' : row.source),
  },
  {
    key: 'since',
    title: 'Since',
    value: (row) => row.since,
    render: (row) => <Ago at={row.since} />,
  },
];

export function Reservations() {
  const found = useReservations();
  return (
    <>
      <Head title="Reservations" />
      <DataTable
        id="reservations"
        label="Reservations"
        rows={found.data}
        error={found.error}
        readAt={found.readAt}
        retry={found.refetch}
        incomplete={!found.complete}
        columns={COLUMNS}
        facets={FACETS}
        rowKey={(row) => row.instance_uuid}
        empty={
          <Empty title="No reservations">
            Instances have one by their flavor, or by an override on their
            view.
          </Empty>
        }
      />
    </>
  );
}
