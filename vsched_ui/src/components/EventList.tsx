// SPDX-License-Identifier: Apache-2.0

import { EVERY, useGrowing } from '../api/hooks';
import type { QueryOf } from '../api/routes';
import type { Event } from '../api/types';
import { type Column, DataTable, type Facet } from './DataTable';
import { Ago } from './figures';
import { instanceColumn } from './identity';
import { HostLink } from './links';
import { ListFoot } from './ListFoot';
import { INCOMPLETE_NAME } from './ServerFilter';
import { Empty, State } from './states';

const RANK = { info: 0, warning: 1, error: 2 };

const FACETS: readonly Facet<Event>[] = [
  {
    key: 'severity',
    title: 'Severity',
    value: (row) => row.severity,
    options: ['error', 'warning', 'info'],
  },
];

const COLUMNS: readonly Column<Event>[] = [
  {
    key: 'at',
    title: 'When',
    value: (row) => row.at,
    render: (row) => <Ago at={row.at} />,
  },
  {
    key: 'severity',
    title: 'Severity',
    value: (row) => RANK[row.severity],
    render: (row) => <State of={row.severity} />,
    text: (row) => row.severity,
  },
  {
    key: 'host',
    title: 'Host',
    value: (row) => row.host,
    render: (row) => <HostLink name={row.host} />,
  },
  instanceColumn<Event>(({ instance_uuid, ...row }) =>
    instance_uuid === null ? null : { instance_uuid, ...row },
  ),
  {
    key: 'code',
    title: 'Code',
    value: (row) => row.code,
    render: (row) => <code className="vs-code">{row.code}</code>,
  },
  {
    key: 'detail',
    title: 'What happened',
    value: (row) => row.detail,
    render: (row) => <span className="vs-detail">{row.detail}</span>,
  },
];

/** Events, newest first; older ones on request. */
export function EventList({
  id,
  query,
  size = 100,
  plain = false,
}: {
  id: string;
  query: QueryOf<'GET', '/v1/events'>;
  size?: number;
  plain?: boolean;
}) {
  const found = useGrowing('/v1/events', query, EVERY.list, size);
  return (
    <>
      <DataTable
        id={id}
        label="Events"
        rows={plain ? found.data?.slice(0, size) : found.data}
        error={found.error}
        readAt={found.readAt}
        retry={found.refetch}
        columns={COLUMNS}
        facets={FACETS}
        rowKey={(row) => row.uuid}
        sort={{ key: 'at', direction: 'desc' }}
        plain={plain}
        empty={
          <Empty title="No events">
            {query.severity !== undefined
              ? 'Read all severities to have the others.'
              : query.server_name !== undefined
                ? INCOMPLETE_NAME
                : 'Refusals, repaired drift and changes by operators are here once there are any.'}
          </Empty>
        }
      />
      <ListFoot
        key={JSON.stringify(query)}
        found={found}
        name="events"
        noun="events"
        grows={!plain}
      />
    </>
  );
}
