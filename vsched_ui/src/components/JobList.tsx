// SPDX-License-Identifier: Apache-2.0

import { Button, Progress, ProgressSize } from '@patternfly/react-core';

import { EVERY, useGrowing } from '../api/hooks';
import { useChange } from '../api/mutations';
import type { QueryOf } from '../api/routes';
import type { Job } from '../api/types';
import { RULES, useApi } from '../app/api';
import { duration, percent, text } from '../model/units';
import { type Column, DataTable, type Facet } from './DataTable';
import { Ago, Unknown } from './figures';
import { HostLink } from './links';
import { ListFoot } from './ListFoot';
import { Empty, Problems, State } from './states';

export const KINDS: Record<string, string> = {
  'profile-error': 'Error profile',
  'profile-overhead': 'Overhead profile',
};

const FACETS: readonly Facet<Job>[] = [
  {
    key: 'state',
    title: 'State',
    value: (row) => row.state,
    options: ['queued', 'running', 'done', 'failed', 'cancelled'],
  },
  {
    key: 'kind',
    title: 'Kind',
    value: (row) => row.kind,
    options: Object.keys(KINDS),
  },
];

export function unfinished(job: Job): boolean {
  return job.state === 'queued' || job.state === 'running';
}

/** How far a job has got. */
export function JobProgress({ job }: { job: Job }) {
  return (
    <Progress
      size={ProgressSize.sm}
      aria-label={`Progress of ${KINDS[job.kind] ?? job.kind} of ${job.host}`}
      value={job.progress_ppm / 10_000}
      label={text(percent(job.progress_ppm))}
      valueText={text(percent(job.progress_ppm))}
      {...(job.state === 'failed'
        ? { variant: 'danger' }
        : job.state === 'done'
          ? { variant: 'success' }
          : {})}
    />
  );
}

/** How long a job will still take; a dash when that is not known. */
export function TimeLeft({ job }: { job: Job }) {
  if (job.eta_s === null) {
    return (
      <Unknown
        why={
          job.state === 'running'
            ? 'known once it has progressed'
            : 'it does not run'
        }
      />
    );
  }
  return (
    <span
      className="vs-figure"
      title="at the speed of its progress so far"
    >{`about ${duration(Math.ceil(job.eta_s))}`}</span>
  );
}

/** Cancel a job that goes on, or resume one that came to an early end. */
export function JobAction({ job }: { job: Job }) {
  const { client, may } = useApi();
  const change = useChange({
    send: (wanted: Job['wanted']) =>
      client.call('PATCH', '/v1/jobs/{job_uuid}', {
        path: { job_uuid: job.uuid },
        body: { wanted },
      }),
    keys: [['jobs']],
  });
  if (!may(RULES.cancelJob)) {
    return null;
  }
  const wanted =
    unfinished(job) && job.wanted === 'run'
      ? 'cancel'
      : job.state === 'failed' || job.state === 'cancelled'
        ? 'run'
        : null;
  return (
    <>
      {wanted !== null && (
        <Button
          variant="link"
          isInline
          isDisabled={change.isPending}
          onClick={() => change.mutate(wanted)}
        >
          {wanted === 'cancel' ? 'Cancel' : 'Resume'}
        </Button>
      )}
      <Problems error={change.error} />
    </>
  );
}

const COLUMNS: readonly Column<Job>[] = [
  {
    key: 'created',
    title: 'Ordered',
    value: (row) => row.created_at,
    render: (row) => <Ago at={row.created_at} everyMs={1_000} />,
  },
  {
    key: 'host',
    title: 'Host',
    value: (row) => row.host,
    render: (row) => <HostLink name={row.host} />,
  },
  {
    key: 'kind',
    title: 'Kind',
    value: (row) => KINDS[row.kind] ?? row.kind,
  },
  {
    key: 'state',
    title: 'State',
    value: (row) => row.state,
    render: (row) => <State of={row.state} />,
  },
  {
    key: 'started',
    title: 'Started',
    value: (row) => row.started_at,
    render: (row) => <Ago at={row.started_at} everyMs={1_000} />,
    help: 'When the agent began the attempt.',
  },
  {
    key: 'progress',
    title: 'Progress',
    value: (row) => row.progress_ppm,
    render: (row) => (
      <div className="vs-progress">
        <JobProgress job={row} />
      </div>
    ),
  },
  {
    key: 'left',
    title: 'Time left',
    numeric: true,
    value: (row) => row.eta_s,
    render: (row) => <TimeLeft job={row} />,
    help: 'An estimate, from its progress so far.',
  },
  {
    key: 'detail',
    title: 'Detail',
    value: (row) => row.detail,
    render: (row) => <span className="vs-detail">{row.detail || '–'}</span>,
  },
  {
    key: 'attempt',
    title: 'Attempt',
    numeric: true,
    value: (row) => row.attempt,
  },
  {
    key: 'updated',
    title: 'Updated',
    value: (row) => row.updated_at,
    render: (row) => <Ago at={row.updated_at} everyMs={1_000} />,
  },
];

const actions = (row: Job) => <JobAction job={row} />;

/** Jobs, newest first; older ones on request. */
export function JobList({
  id,
  query,
}: {
  id: string;
  query: QueryOf<'GET', '/v1/jobs'>;
}) {
  const found = useGrowing('/v1/jobs', query, EVERY.live * 2);
  const { may } = useApi();
  return (
    <>
      <DataTable
        id={id}
        label="Jobs"
        rows={found.data}
        error={found.error}
        readAt={found.readAt}
        retry={found.refetch}
        columns={COLUMNS}
        facets={FACETS}
        rowKey={(row) => row.uuid}
        sort={{ key: 'created', direction: 'desc' }}
        {...(may(RULES.cancelJob) ? { rowActions: actions } : {})}
        empty={
          <Empty title="No jobs">
            “Measure now” on the view of a host orders one.
          </Empty>
        }
      />
      <ListFoot
        key={JSON.stringify(query)}
        found={found}
        name="jobs"
        noun="jobs"
      />
    </>
  );
}
