// SPDX-License-Identifier: Apache-2.0

import { EVERY, useList } from '../api/hooks';
import type { Balloon } from '../api/types';
import { BALLOON_RULES, useApi, useMayRead, useOwnOnly } from '../app/api';
import { useAddressed } from '../components/addressed';
import {
  BalloonActions,
  BalloonHistory,
  orderText,
} from '../components/BalloonPanel';
import { type Column, DataTable, type Facet } from '../components/DataTable';
import { Ago, Unknown } from '../components/figures';
import { identityColumns } from '../components/identity';
import { HostLink } from '../components/links';
import { Head, Section } from '../components/Section';
import { SERVER, ServerFilter } from '../components/ServerFilter';
import { Empty, State } from '../components/states';
import { serverQuery } from '../model/identity';
import { POLICIES } from '../model/rights';

const FACETS: readonly Facet<Balloon>[] = [
  {
    key: 'state',
    title: 'State',
    value: (row) => row.state ?? 'unknown',
    options: ['full', 'trial', 'kept', 'manual', 'returning', 'unknown'],
  },
];

const COLUMNS: readonly Column<Balloon>[] = [
  ...identityColumns<Balloon>((row) => row),
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
    render: (row) => <State of={row.state} title={row.cause ?? ''} />,
  },
  {
    key: 'vcpus',
    title: 'vCPUs in use',
    numeric: true,
    value: (row) => row.online_vcpus,
    render: (row) =>
      row.online_vcpus === null ? (
        <Unknown />
      ) : (
        `${row.online_vcpus} of ${row.vcpus}`
      ),
  },
  {
    key: 'auto',
    title: 'Automatic',
    value: (row) => row.auto,
    render: (row) =>
      row.auto === null
        ? '–'
        : row.auto
          ? row.dry_run
            ? 'proposes only'
            : 'yes'
          : 'no',
    help: 'Whether its flavor lets the agent take vCPUs by itself.',
  },
  {
    key: 'cause',
    title: 'Why',
    value: (row) => row.cause,
    render: (row) => <span className="vs-detail">{row.cause ?? '–'}</span>,
  },
  {
    key: 'order',
    title: 'Ordered by operators',
    value: orderText,
    render: (row) => (
      <span title={row.order?.detail ?? ''}>{orderText(row)}</span>
    ),
  },
  {
    key: 'since',
    title: 'Since',
    value: (row) => row.since,
    render: (row) => <Ago at={row.since} />,
  },
];

const actions = (row: Balloon) => <BalloonActions balloon={row} />;

export function Balloons() {
  const found = useList('/v1/balloons', {}, EVERY.list);
  const { may } = useApi();
  const own = useOwnOnly('/v1/balloons');
  const history = useMayRead('/v1/balloons/history');
  const [server] = useAddressed(SERVER);
  return (
    <>
      <Head title="Balloons">
        {own ? 'Instances of your project' : 'Instances'} that may be left with
        fewer vCPUs, and those with an order.
        {!history &&
          ` What was done to them before is not shown: policy ${POLICIES['/v1/balloons/history']} does not allow it.`}
      </Head>
      <Section title="Now">
        <DataTable
          id="balloons"
          label="Balloons"
          rows={found.data}
          error={found.error}
          readAt={found.readAt}
          retry={found.refetch}
          incomplete={!found.complete}
          columns={COLUMNS}
          facets={FACETS}
          rowKey={(row) => row.instance_uuid}
          {...(BALLOON_RULES.some(may) ? { rowActions: actions } : {})}
          empty={
            <Empty title="No instance may be ballooned">
              Set vsched:balloon=auto in the extra specs of a flavor: its
              instances are here once they run.
            </Empty>
          }
        />
      </Section>
      {history && (
        <Section
          title="History"
          actions={<ServerFilter label="Read the history of this server" />}
        >
          <BalloonHistory id="history" query={serverQuery(server)} />
        </Section>
      )}
    </>
  );
}
