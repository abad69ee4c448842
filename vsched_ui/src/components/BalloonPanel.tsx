// SPDX-License-Identifier: Apache-2.0

import { Button, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useState } from 'react';

import { EVERY, useGrowing } from '../api/hooks';
import { useChange } from '../api/mutations';
import type { QueryOf } from '../api/routes';
import type { Balloon, BalloonChange, BalloonCreate } from '../api/types';
import { BALLOON_RULES, RULES, useApi } from '../app/api';
import { wasWithdrawn } from '../model/changes';
import { titleOf } from '../model/identity';
import { duration, fixed } from '../model/units';
import { type Column, DataTable, type Facet } from './DataTable';
import { Ago, Figure } from './figures';
import { instanceColumn } from './identity';
import { HostLink } from './links';
import { ListFoot } from './ListFoot';
import { INCOMPLETE_NAME } from './ServerFilter';
import { Empty, Problems, State } from './states';

/** What an order is about. */
type Wanted = Partial<Pick<BalloonCreate, 'target_vcpus' | 'frozen'>>;

/** Order how many vCPUs an instance uses, freeze that, or leave it be. */
export function BalloonActions({ balloon }: { balloon: Balloon }) {
  const { client, may } = useApi();
  const [target, setTarget] = useState('');
  const { instance_uuid } = balloon;
  const generation = balloon.order?.generation ?? 0;
  const act = useChange({
    send: async (wanted: Wanted | null): Promise<unknown> => {
      if (wanted === null) {
        return client.call('DELETE', '/v1/balloons/{instance_uuid}', {
          path: { instance_uuid },
          query: { generation },
        });
      }
      const { target_vcpus } = wanted;
      return balloon.order === null && target_vcpus !== undefined
        ? client.call('POST', '/v1/balloons', {
            body: { instance_uuid, generation, target_vcpus },
          })
        : client.call('PATCH', '/v1/balloons/{instance_uuid}', {
            path: { instance_uuid },
            body: { generation, ...wanted },
          });
    },
    // Until it is read again, another click would send an old generation.
    keys: [['balloon', instance_uuid], ['balloons']],
  });
  const order = balloon.order;
  // One that was withdrawn orders nothing, until the agent has got that.
  const ordered = order !== null && (order.target_vcpus !== null || order.frozen);
  const withdrawn =
    act.variables === null && wasWithdrawn(act.error, !ordered);
  const least = Math.max(1, balloon.floor_vcpus ?? 1);
  const most = balloon.vcpus ?? least;
  const name = titleOf(balloon);
  if (!BALLOON_RULES.some(may)) {
    return null;
  }
  return (
    <>
      <span className="vs-buttons">
        {may(RULES.orderBalloon) && most > least && (
          <>
            <FormSelect
              className="vs-choice vs-choice--short"
              aria-label={`vCPUs for ${name}`}
              value={target}
              onChange={(_, value) => setTarget(value)}
            >
              <FormSelectOption value="" label="vCPUs …" />
              {Array.from({ length: most - least + 1 }, (_, index) => (
                <FormSelectOption
                  key={index}
                  value={String(least + index)}
                  label={String(least + index)}
                />
              ))}
            </FormSelect>
            <Button
              variant="secondary"
              size="sm"
              isDisabled={target === '' || act.isPending}
              onClick={() => act.mutate({ target_vcpus: Number(target) })}
            >
              Order
            </Button>
          </>
        )}
        {may(RULES.changeBalloon) && (
          <Button
            variant="secondary"
            size="sm"
            isDisabled={act.isPending}
            onClick={() => act.mutate({ frozen: order?.frozen !== true })}
          >
            {order?.frozen ? 'Unfreeze' : 'Freeze'}
          </Button>
        )}
        {may(RULES.withdrawBalloon) && order !== null && (
          <Button
            variant="link"
            size="sm"
            isDisabled={act.isPending}
            onClick={() => act.mutate(null)}
          >
            Leave to the agent
          </Button>
        )}
      </span>
      {!withdrawn ? (
        <Problems error={act.error} />
      ) : (
        !ordered && (
          <p className="vs-small" role="status">
            There is no order any more.
          </p>
        )
      )}
    </>
  );
}

/** What is ordered, in words. */
export function orderText(balloon: Balloon): string {
  const order = balloon.order;
  if (order === null) {
    return 'none';
  }
  const what = [
    order.target_vcpus === null ? null : `${order.target_vcpus} vCPUs`,
    order.frozen ? 'frozen' : null,
  ].filter((one) => one !== null);
  return `${what.join(', ') || 'nothing'}: ${order.state}`;
}

const OUTCOMES: readonly Facet<BalloonChange>[] = [
  {
    key: 'outcome',
    title: 'Outcome',
    value: (row) => row.outcome ?? 'open',
    options: [
      'open',
      'kept',
      'calm',
      'reverted',
      'unknown',
      'failed',
      'undone',
      'changed',
      'proposed',
    ],
  },
];

const HISTORY: readonly Column<BalloonChange>[] = [
  {
    key: 'started',
    title: 'Began',
    value: (row) => row.started_at,
    render: (row) => <Ago at={row.started_at} />,
  },
  instanceColumn<BalloonChange>((row) => row),
  {
    key: 'host',
    title: 'Host',
    value: (row) => row.host,
    render: (row) => <HostLink name={row.host} />,
  },
  {
    key: 'vcpus',
    title: 'vCPUs',
    value: (row) => row.online_vcpus - row.before_vcpus,
    render: (row) =>
      `${row.before_vcpus} → ${row.online_vcpus} of ${row.vcpus}`,
  },
  {
    key: 'duration',
    title: 'Lasted',
    numeric: true,
    value: (row) => row.duration_s,
    render: (row) =>
      row.duration_s === null ? 'goes on' : duration(row.duration_s),
  },
  {
    key: 'took',
    title: 'Took',
    numeric: true,
    value: (row) => row.took_ms,
    render: (row) => (
      <Figure
        of={
          row.took_ms === null
            ? null
            : { value: fixed(row.took_ms, 0), unit: 'ms' }
        }
      />
    ),
    help: 'From the command until the guest was verified.',
  },
  {
    key: 'outcome',
    title: 'Outcome',
    value: (row) => row.outcome,
    render: (row) => <State of={row.outcome} />,
  },
  {
    key: 'by',
    title: 'By',
    value: (row) => (row.manual ? 'operator' : 'agent'),
  },
  {
    key: 'cause',
    title: 'Why',
    value: (row) => row.cause,
    render: (row) => (
      <span className="vs-detail">
        {row.cause}
        {row.detail !== null && row.detail !== '' && ` — ${row.detail}`}
      </span>
    ),
    text: (row) => row.detail ?? '',
  },
];

/** Balloons that are and that were, newest first. */
export function BalloonHistory({
  id,
  query,
}: {
  id: string;
  query: QueryOf<'GET', '/v1/balloons/history'>;
}) {
  const found = useGrowing('/v1/balloons/history', query, EVERY.list);
  return (
    <>
      <DataTable
        id={id}
        label="History of balloons"
        rows={found.data}
        error={found.error}
        readAt={found.readAt}
        retry={found.refetch}
        columns={HISTORY}
        facets={OUTCOMES}
        rowKey={(row) => row.uuid}
        sort={{ key: 'started', direction: 'desc' }}
        empty={
          <Empty title="No balloons yet">
            {query.server_name === undefined
              ? 'vCPUs that are taken from instances, and given back, are here once there are any.'
              : INCOMPLETE_NAME}
          </Empty>
        }
      />
      <ListFoot
        key={JSON.stringify(query)}
        found={found}
        name="history"
        noun="balloons"
      />
    </>
  );
}
