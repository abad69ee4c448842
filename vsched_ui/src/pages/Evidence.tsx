// SPDX-License-Identifier: Apache-2.0

import { useMemo } from 'react';
import { Link } from 'react-router';

import { useNewestDone, useNewestEvents } from '../api/evidence';
import { oldest } from '../api/failures';
import { type Result, segment, useFleet } from '../api/hooks';
import { type Column, DataTable, type Facet } from '../components/DataTable';
import {
  Ago,
  ErrorFigure,
  Figure,
  Micros,
  Moment,
  Percent,
  Unknown,
} from '../components/figures';
import { HostLink } from '../components/links';
import { Head, Section, Tile, Tiles } from '../components/Section';
import { NoHost, State } from '../components/states';
import {
  type CertificateRow,
  EXPIRED,
  type PriceRow,
  type Status,
  TERMS,
  certificateRows,
  ofBenchmark,
  priceRows,
} from '../model/evidence';
import type { Fleet } from '../model/fleet';
import {
  BENCHMARKS,
  type PublishedRow,
  VERDICTS,
  countOf,
  figure,
  newestRun,
  publishedRows,
} from '../model/published';
import { fixed, nanoseconds, percent, text } from '../model/units';

export function Evidence() {
  const fleet = useFleet();
  return (
    <>
      <Head title="Evidence">
        What was measured: by the hosts of this fleet, of themselves, and by
        the project’s benchmarks, before this version was built.
      </Head>
      <Certificates fleet={fleet} />
      <Prices fleet={fleet} />
      <Published />
    </>
  );
}

/** Why one of several requests failed, since when, and how to repeat them. */
function combined(...results: readonly Result<unknown>[]) {
  return {
    error: results.find((one) => one.error !== null)?.error ?? null,
    readAt: oldest(...results),
    retry: () => results.forEach((one) => one.refetch()),
  };
}

interface WithStatus {
  host: string;
  status: Status;
}

function hostColumn<T extends WithStatus>(): Column<T> {
  return {
    key: 'host',
    title: 'Host',
    value: (row) => row.host,
    render: (row) => <HostLink name={row.host} />,
  };
}

function statusColumn<T extends WithStatus>(): Column<T> {
  return {
    key: 'status',
    title: 'Status',
    value: (row) => row.status.state,
    render: (row) => <State of={row.status.state} />,
  };
}

function whyColumn<T extends WithStatus>(): Column<T> {
  return {
    key: 'why',
    title: 'Why',
    value: (row) => row.status.why,
    render: (row) => (
      <span className="vs-detail">{row.status.why || '–'}</span>
    ),
  };
}

function statusFacet<T extends WithStatus>(
  options: readonly Status['state'][],
): Facet<T> {
  return {
    key: 'status',
    title: 'Status',
    value: (row) => row.status.state,
    options,
  };
}

const NO_HOSTS = <NoHost />;

const CERTIFICATE_FACETS: readonly Facet<CertificateRow>[] = [
  statusFacet(['in force', 'withdrawn', 'out of date', 'none known']),
  {
    key: 'backend',
    title: 'Backend',
    value: (row) => row.backend ?? 'none',
    options: ['deadline', 'cfs', 'rtds', 'credit2', 'credit', 'none'],
  },
];

/** The run of a row, which leads to all that it measured. */
function ErrorRun({ row }: { row: CertificateRow }) {
  if (row.backend === null && row.measured_at === null) {
    return <Unknown />;
  }
  return (
    <Link to={`/hosts/${segment(row.host)}?tab=error`}>{extentOf(row)}</Link>
  );
}

function extentOf(row: CertificateRow): string {
  if (row.quick === null) {
    return 'profile';
  }
  return (
    (row.quick ? 'quick' : 'thorough') +
    (row.complete === false ? ', not complete' : '')
  );
}

function sharesOf(row: CertificateRow): string | null {
  const [first, last] = [row.shares_ppm[0], row.shares_ppm.at(-1)];
  if (first === undefined || last === undefined) {
    return null;
  }
  return first === last
    ? text(percent(first))
    : `${text(percent(first))} to ${text(percent(last))}`;
}

const CERTIFICATES: readonly Column<CertificateRow>[] = [
  hostColumn(),
  {
    key: 'backend',
    title: 'Backend',
    value: (row) => row.backend,
  },
  {
    key: 'period',
    title: 'Period',
    numeric: true,
    value: (row) => row.period_us,
    render: (row) => <Micros us={row.period_us} />,
  },
  {
    key: 'worst',
    title: 'Error bound',
    numeric: true,
    value: (row) => row.worst?.lower_ppm,
    render: (row) =>
      row.worst === null ? (
        <Unknown why="no share has enough windows, or none was measured" />
      ) : (
        <ErrorFigure ppm={row.worst.lower_ppm} />
      ),
    help: 'The worst of all shares: in 99 of 100 seconds no more than that is missing of a reservation.',
  },
  {
    key: 'at',
    title: 'At share',
    numeric: true,
    value: (row) => row.worst?.share_ppm,
    render: (row) => <Percent ppm={row.worst?.share_ppm} />,
    help: 'The share of a CPU that has this bound.',
  },
  {
    key: 'confidence',
    title: 'Confidence',
    numeric: true,
    value: (row) => row.confidence_ppm,
    render: (row) => <Percent ppm={row.confidence_ppm} />,
    help: 'Of the bound, as the agent is configured.',
  },
  {
    key: 'shares',
    title: 'Shares',
    value: (row) => row.shares_ppm[0],
    render: (row) => sharesOf(row) ?? '–',
    text: (row) => sharesOf(row) ?? '',
    help: 'The measured shares of a CPU.',
  },
  {
    key: 'bounded',
    title: 'Bounded',
    numeric: true,
    value: (row) => (row.backend === null ? null : row.bounded),
    render: (row) =>
      row.backend === null ? (
        <Unknown />
      ) : (
        `${row.bounded} of ${row.shares_ppm.length}`
      ),
    help: 'Shares with enough windows for a bound.',
  },
  statusColumn(),
  {
    key: 'measured',
    title: 'Measured',
    value: (row) => row.measured_at,
    render: (row) =>
      row.measured_at === null ? (
        <Unknown why={EXPIRED} />
      ) : (
        <Ago at={row.measured_at} />
      ),
  },
  {
    key: 'run',
    title: 'Profile',
    value: extentOf,
    render: (row) => <ErrorRun row={row} />,
    help: 'The newest run. Its notes, windows and number of threads are with the host.',
  },
  whyColumn(),
];

/** What hosts have measured of the errors of their CPU allocation. */
function Certificates({ fleet }: { fleet: Result<Fleet> }) {
  const measured = useNewestEvents('vsched.profile.measured');
  const withdrawn = useNewestEvents('vsched.certificates.withdrawn');
  const granted = useNewestEvents('vsched.certificates.granted');
  const rows = useMemo(
    () =>
      fleet.data && measured.data && withdrawn.data && granted.data
        ? certificateRows(fleet.data, {
            measured: measured.data,
            withdrawn: withdrawn.data,
            granted: granted.data,
          })
        : undefined,
    [fleet.data, measured.data, withdrawn.data, granted.data],
  );
  return (
    <Section
      title="This fleet: errors of CPU allocation"
      note="The certificates that schedulers use, by backend and period, from points with contention. A run on a host from which CPU time was stolen has a note in its profile."
    >
      <DataTable
        id="certificates"
        label="Error certificates"
        rows={rows}
        {...combined(fleet, measured, withdrawn, granted)}
        columns={CERTIFICATES}
        facets={CERTIFICATE_FACETS}
        rowKey={(row) => `${row.host} ${row.backend} ${row.period_us}`}
        sort={{ key: 'worst', direction: 'asc' }}
        empty={NO_HOSTS}
      />
    </Section>
  );
}

const PRICE_FACETS: readonly Facet<PriceRow>[] = [
  statusFacet(['in force', 'poor fit', 'out of date', 'none known']),
];

/** The name of a term as the title of a column. */
function titleOf(term: string): string {
  return term.charAt(0).toUpperCase() + term.slice(1);
}

const PRICES: readonly Column<PriceRow>[] = [
  hostColumn(),
  ...Object.entries(TERMS).map(
    ([term, name]): Column<PriceRow> => ({
      key: term,
      title: titleOf(name),
      numeric: true,
      value: (row) => row.prices_ns[term],
      render: (row) => {
        const price = row.prices_ns[term];
        return (
          <Figure of={price === undefined ? null : nanoseconds(price)} />
        );
      },
      help: 'CPU time of the host for each.',
    }),
  ),
  statusColumn(),
  {
    key: 'done',
    title: 'Last job',
    value: (row) => row.done_at,
    render: (row) =>
      row.done_at === null ? (
        <Unknown why={EXPIRED} />
      ) : (
        <Ago at={row.done_at} />
      ),
    help: 'When the newest job that measured it was done. A run by the command on the host is no job.',
  },
  {
    key: 'run',
    title: 'Profile',
    value: (row) => row.host,
    render: (row) =>
      row.status.state === 'none known' ? (
        <Unknown />
      ) : (
        <Link to={`/hosts/${segment(row.host)}?tab=overhead`}>profile</Link>
      ),
    help: 'Its standard errors and how well it fits are with the host.',
  },
  whyColumn(),
];

/** What the work of hosts for the I/O of instances costs. */
function Prices({ fleet }: { fleet: Result<Fleet> }) {
  const poor = useNewestEvents('vsched.profile.poor', ofBenchmark);
  const done = useNewestDone('profile-overhead');
  const rows = useMemo(
    () =>
      fleet.data && poor.data && done.data
        ? priceRows(fleet.data, { poor: poor.data, done: done.data })
        : undefined,
    [fleet.data, poor.data, done.data],
  );
  return (
    <Section
      title="This fleet: cost of I/O"
      note="The prices that schedulers use: what packets and blocks of instances cost each host in CPU time."
    >
      <DataTable
        id="prices"
        label="Prices of I/O"
        rows={rows}
        {...combined(fleet, poor, done)}
        columns={PRICES}
        facets={PRICE_FACETS}
        rowKey={(row) => row.host}
        sort={{ key: 'net_rx', direction: 'desc' }}
        empty={NO_HOSTS}
      />
    </Section>
  );
}

const VERDICT_FACETS: readonly Facet<PublishedRow>[] = [
  {
    key: 'verdict',
    title: 'Verdict',
    value: (row) => row.verdict,
    options: VERDICTS,
  },
];

function Measured({ value, unit }: { value: number; unit: string }) {
  return <Figure of={{ value: figure(value), unit }} />;
}

/** All runs of a target in one text; null without any. */
function runsOf({ target }: PublishedRow): string | null {
  if (target === null || target.least === null || target.most === null) {
    return null;
  }
  const spread =
    target.least === target.most
      ? figure(target.least)
      : `${figure(target.least)} to ${figure(target.most)}`;
  return `${spread} ${target.unit}; ${target.runs_met} of ${target.runs} met`;
}

const PUBLISHED: readonly Column<PublishedRow>[] = [
  {
    key: 'benchmark',
    title: 'Benchmark',
    value: (row) => row.benchmark.title,
    render: (row) => (
      <span className="vs-detail">{row.benchmark.title}</span>
    ),
    text: (row) => row.benchmark.name,
  },
  {
    key: 'metric',
    title: 'Metric',
    value: (row) => row.target?.metric,
    render: (row) =>
      row.target === null ? (
        '–'
      ) : (
        <code className="vs-code">{row.target.metric}</code>
      ),
  },
  {
    key: 'target',
    title: 'Target',
    value: (row) => row.target?.target,
  },
  {
    key: 'ours',
    title: 'Ours',
    numeric: true,
    value: (row) => row.target?.ours,
    render: ({ target }) =>
      target === null || target.ours === null ? (
        <Unknown why="not measured by the newest run" />
      ) : (
        <Measured value={target.ours} unit={target.unit} />
      ),
    help: 'What the newest run gave.',
  },
  {
    key: 'verdict',
    title: 'Verdict',
    value: (row) => VERDICTS.indexOf(row.verdict),
    render: (row) => <State of={row.verdict} />,
    text: (row) => row.verdict,
  },
  {
    key: 'missed',
    title: 'Missed by',
    numeric: true,
    // What is met comes last, as what was not measured.
    value: (row) => row.target?.missed_by || null,
    render: ({ target }) =>
      target === null || !target.missed_by ? (
        '–'
      ) : (
        <Measured value={target.missed_by} unit={target.unit} />
      ),
  },
  {
    key: 'runs',
    title: 'All runs',
    value: (row) => row.target?.runs,
    render: (row) => runsOf(row) ?? '–',
    help: 'The least and the greatest of all runs that are kept, and how many of them met the target. Sorted by their number.',
  },
  {
    key: 'source',
    title: 'Set by',
    value: (row) => row.target?.source,
  },
  {
    key: 'when',
    title: 'Newest run',
    value: (row) => row.benchmark.run?.when,
    render: (row) => <Moment at={row.benchmark.run?.when ?? null} />,
  },
  {
    key: 'commit',
    title: 'Commit',
    value: (row) => row.benchmark.run?.commit,
    render: ({ benchmark: { run } }) =>
      run === null ? (
        <Unknown why="never measured" />
      ) : (
        <>
          <span className="vs-mono" title={run.commit}>
            {run.commit.slice(0, 8)}
          </span>
          {run.dirty && ' with changes'}
        </>
      ),
    help: 'Of the code that was measured. With changes: its tree had some that no commit has.',
  },
  {
    key: 'stolen',
    title: 'Stolen',
    numeric: true,
    value: (row) => row.benchmark.run?.stolen_pct,
    render: ({ benchmark: { run } }) =>
      run === null || run.stolen_pct === null ? (
        <Unknown why="not kept of this run" />
      ) : (
        <Figure of={{ value: figure(run.stolen_pct), unit: '%' }} />
      ),
    help: 'Of the CPUs’ time, by a hypervisor below the machine, meanwhile.',
  },
  {
    key: 'machine',
    title: 'Machine',
    value: (row) => row.benchmark.run?.machine,
  },
];

/** What the project’s benchmarks gave, as of the build of the page. */
function Published() {
  const rows = useMemo(() => publishedRows(BENCHMARKS), []);
  return (
    <Section
      title="Published measurements"
      note="Targets that were set before anything was measured, and what the project’s own benchmarks gave on its own machines. It is a part of this page’s build, and nothing of it is of this fleet. The newest run decides. Whether the code has changed since is not said here, as any later commit may change it: “python -m benchmarks --stale” in the source lists such runs, and the documentation’s pages of evidence have all runs."
    >
      <Tiles>
        <Tile title="Targets met">{fixed(countOf(rows, 'met'), 0)}</Tile>
        <Tile title="Targets missed">{fixed(countOf(rows, 'missed'), 0)}</Tile>
        <Tile title="Not measured">
          {fixed(countOf(rows, 'not measured'), 0)}
        </Tile>
        <Tile title="Benchmarks" note="with a run that is kept">
          {BENCHMARKS.filter((one) => one.run !== null).length} of{' '}
          {BENCHMARKS.length}
        </Tile>
        <Tile title="Newest run">
          <Moment at={newestRun(BENCHMARKS)} />
        </Tile>
      </Tiles>
      <DataTable
        id="published"
        label="Published targets"
        rows={rows}
        columns={PUBLISHED}
        facets={VERDICT_FACETS}
        rowKey={({ benchmark, target }) =>
          `${benchmark.name} ${target?.metric} ${target?.target}`
        }
        sort={{ key: 'verdict', direction: 'asc' }}
      />
    </Section>
  );
}
