// SPDX-License-Identifier: Apache-2.0

import {
  Alert,
  Button,
  FormSelect,
  FormSelectOption,
} from '@patternfly/react-core';
import { type ReactNode, useMemo, useState } from 'react';

import { EVERY, type Result, useList, usePolled } from '../api/hooks';
import { useChange } from '../api/mutations';
import type {
  ErrorPoint,
  ErrorProfile,
  OverheadProfile,
  Price,
  Profile,
} from '../api/types';
import { RULES, useApi } from '../app/api';
import { TERMS } from '../model/evidence';
import {
  count,
  fixed,
  microseconds,
  nanoseconds,
  percent,
  text,
} from '../model/units';
import {
  Chart,
  type Colors,
  categoryAxis,
  grid,
  legend,
  tooltip,
  valueAxis,
} from './Chart';
import { type Column, DataTable } from './DataTable';
import { Ago, ErrorFigure, Figure, Micros, Moment, Percent } from './figures';
import { JobAction, JobProgress, TimeLeft, unfinished } from './JobList';
import { Facts } from './Section';
import { Empty, Loaded, Problems, State } from './states';

type Kind = 'error' | 'overhead';

const RULE: Record<Kind, string> = {
  error: RULES.measureError,
  overhead: RULES.measureOverhead,
};

/** Start a measurement of a host, and show how far it has got. */
export function Measure({ host, kind }: { host: string; kind: Kind }) {
  const { client, may } = useApi();
  const jobs = useList(
    '/v1/jobs',
    { host, kind: [`profile-${kind}`] },
    EVERY.live,
  );
  const current = jobs.data?.find(unfinished);
  const last = jobs.data?.[0];
  const start = useChange({
    send: (quick: boolean) =>
      client.call('POST', `/v1/hosts/{name}/profiles/${kind}`, {
        path: { name: host },
        body: quick ? { quick } : {},
      }),
    keys: [['jobs']],
  });
  // Of a list that cannot be read it is not known whether a job runs.
  const busy =
    jobs.data === undefined || current !== undefined || start.isPending;
  return (
    <div className="vs-measure">
      {may(RULE[kind]) && (
        <div className="vs-buttons">
          <Button
            variant="secondary"
            isDisabled={busy}
            onClick={() => start.mutate(true)}
          >
            Measure now, quickly
          </Button>
          <Button
            variant="link"
            isDisabled={busy}
            onClick={() => start.mutate(false)}
          >
            Measure thoroughly
          </Button>
        </div>
      )}
      <Problems error={start.error} />
      <Problems error={jobs.data === undefined ? jobs.error : null} />
      {current !== undefined && (
        <div className="vs-job">
          <State of={current.state} /> <JobProgress job={current} />
          <span className="vs-small">
            <span>{current.detail}</span>
            {current.started_at !== null && (
              <>
                {' · started '}
                <Ago at={current.started_at} everyMs={1_000} />
              </>
            )}
            {current.eta_s !== null && (
              <>
                {' · '}
                <TimeLeft job={current} /> left
              </>
            )}
          </span>
          <JobAction job={current} />
        </div>
      )}
      {current === undefined && last?.state === 'failed' && (
        <Alert
          variant="warning"
          isInline
          isPlain
          title={`The last run failed: ${last.detail}`}
        />
      )}
    </div>
  );
}

function useErrorProfiles(name: string): Result<ErrorProfile[]> {
  const { client } = useApi();
  return usePolled(
    ['profiles', name, 'error'],
    async (signal) =>
      (
        await client.call('GET', '/v1/hosts/{name}/profiles/error', {
          path: { name },
          signal,
        })
      ).error_profiles,
    EVERY.fleet,
  );
}

function useOverheadProfiles(name: string): Result<OverheadProfile[]> {
  const { client } = useApi();
  return usePolled(
    ['profiles', name, 'overhead'],
    async (signal) =>
      (
        await client.call('GET', '/v1/hosts/{name}/profiles/overhead', {
          path: { name },
          signal,
        })
      ).overhead_profiles,
    EVERY.fleet,
  );
}

/** Choose one of what was measured, where there is a choice. */
function Choice({
  label,
  options,
  value,
  onChange,
}: {
  label: string;
  options: readonly { value: string; label: string }[];
  value: string;
  onChange: (value: string) => void;
}) {
  return (
    <FormSelect
      className="vs-choice"
      aria-label={label}
      value={value}
      onChange={(_, chosen) => onChange(chosen)}
    >
      {options.map((option) => (
        <FormSelectOption
          key={option.value}
          value={option.value}
          label={option.label}
        />
      ))}
    </FormSelect>
  );
}

/** Of profiles from before it was counted: vsched_lib's certification. */
const DEFAULT_THREADS = 5;

/** How budgets were checked, and for how many threads errors hold so. */
function checks(profile: Profile): (readonly [string, ReactNode])[] {
  const { budget_check_us: us, looked_at_threads: threads } =
    profile.features as Record<string, unknown>;
  return typeof us !== 'number' || us === 0
    ? []
    : [
        ['Checks of budgets', <Micros us={us} />],
        [
          'Holds for',
          count(
            typeof threads === 'number' ? threads : DEFAULT_THREADS,
            'reserved thread',
          ),
        ],
      ];
}

function About({ profile }: { profile: Profile }) {
  return (
    <>
      <Facts
        of={[
          ['Measured', <Moment at={profile.finished_at} />],
          [
            'Source',
            profile.source === 'live' ? 'instances in use' : 'benchmark run',
          ],
          ['Version', String(profile.version)],
          ['Kernel', profile.kernel],
          ['Scheduler tick', <Micros us={profile.tick_us} />],
          [
            'Load meanwhile',
            profile.load === null ? '–' : fixed(profile.load, 2),
          ],
          ...checks(profile),
          [
            'Extent',
            `${profile.quick ? 'quick' : 'thorough'}, ${profile.complete ? 'complete' : 'not complete'}`,
          ],
        ]}
      />
      {profile.notes.length > 0 && (
        <ul className="vs-notes">
          {profile.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </>
  );
}

const seriesOf = (point: ErrorPoint) =>
  `${point.backend}, ${text(microseconds(point.period_us))}, ` +
  (point.contenders === 0
    ? 'alone'
    : `${point.contenders} contenders`) +
  (point.probe === 'vcpu' ? ', in a VM' : '');

const POINTS: readonly Column<ErrorPoint>[] = [
  {
    key: 'share',
    title: 'Share',
    numeric: true,
    value: (row) => row.share_ppm,
    render: (row) => <Percent ppm={row.share_ppm} />,
    text: (row) => text(percent(row.share_ppm)),
    help: 'What was reserved, of a CPU.',
  },
  {
    key: 'mean',
    title: 'Mean',
    numeric: true,
    value: (row) => row.mean_ppm,
    render: (row) => <ErrorFigure ppm={row.mean_ppm} />,
    help: 'Of the errors, with their sign: above 0 is more than reserved.',
  },
  {
    key: 'p50',
    title: 'p50 of |error|',
    numeric: true,
    value: (row) => row.abs_p50_ppm,
    render: (row) => <Percent ppm={row.abs_p50_ppm} />,
  },
  {
    key: 'p95',
    title: 'p95 of |error|',
    numeric: true,
    value: (row) => row.abs_p95_ppm,
    render: (row) => <Percent ppm={row.abs_p95_ppm} />,
  },
  {
    key: 'p99',
    title: 'p99 of |error|',
    numeric: true,
    value: (row) => row.abs_p99_ppm,
    render: (row) => <Percent ppm={row.abs_p99_ppm} />,
  },
  {
    key: 'min',
    title: 'Lowest',
    numeric: true,
    value: (row) => row.min_ppm,
    render: (row) => <ErrorFigure ppm={row.min_ppm} />,
  },
  {
    key: 'max',
    title: 'Highest',
    numeric: true,
    value: (row) => row.max_ppm,
    render: (row) => <ErrorFigure ppm={row.max_ppm} />,
  },
  {
    key: 'n',
    title: 'Windows',
    numeric: true,
    value: (row) => row.n,
    help: 'Of one second each.',
  },
];

/** The errors of a host's CPU allocation, by reserved share. */
export function ErrorProfiles({ host }: { host: string }) {
  const found = useErrorProfiles(host);
  return (
    <Loaded result={found}>
      {(profiles) =>
        profiles.length === 0 ? (
          <Empty title="Not measured yet">
            How far the CPU time that this host gives is from what was
            reserved.
          </Empty>
        ) : (
          <ErrorProfileView profiles={profiles} />
        )
      }
    </Loaded>
  );
}

function ErrorProfileView({ profiles }: { profiles: readonly ErrorProfile[] }) {
  const [source, setSource] = useState('');
  const profile =
    profiles.find((one) => one.source === source) ??
    profiles.find((one) => one.source === 'benchmark') ??
    profiles[0];
  const [wanted, setWanted] = useState('');
  const names = useMemo(
    () => [...new Set(profile?.points.map(seriesOf))],
    [profile],
  );
  const chosen = names.includes(wanted) ? wanted : (names[0] ?? '');
  const points = useMemo(
    () =>
      (profile?.points ?? [])
        .filter((point) => seriesOf(point) === chosen)
        .sort((one, other) => one.share_ppm - other.share_ppm),
    [profile, chosen],
  );
  const draw = useMemo(
    () => (colors: Colors) => errorOption(colors, points),
    [points],
  );
  if (profile === undefined) {
    return null;
  }
  return (
    <>
      <div className="vs-buttons">
        {profiles.length > 1 && (
          <Choice
            label="Source of the profile"
            value={profile.source}
            onChange={setSource}
            options={profiles.map((one) => ({
              value: one.source,
              label:
                one.source === 'live' ? 'Instances in use' : 'Benchmark run',
            }))}
          />
        )}
        {names.length > 1 && (
          <Choice
            label="Backend, period and contenders"
            value={chosen}
            onChange={setWanted}
            options={names.map((name) => ({ value: name, label: name }))}
          />
        )}
      </div>
      <Chart
        height={280}
        label={`Size of the errors with ${chosen}, by reserved share: ${points
          .map(
            (point) =>
              `${fixed(point.share_ppm / 10_000, 1)} %: p99 ${fixed(point.abs_p99_ppm / 10_000, 2)} %`,
          )
          .join('; ')}`}
        option={draw}
      />
      <DataTable
        id="points"
        label={`Errors with ${chosen}`}
        rows={points}
        columns={POINTS}
        rowKey={(row) => `${seriesOf(row)} ${row.share_ppm} ${row.window_us}`}
        sort={{ key: 'share', direction: 'asc' }}
      />
      <About profile={profile} />
    </>
  );
}

const ERROR_LINES: readonly [string, (point: ErrorPoint) => number][] = [
  ['|mean error|', (point) => Math.abs(point.mean_ppm)],
  ['p50 of |error|', (point) => point.abs_p50_ppm],
  ['p95 of |error|', (point) => point.abs_p95_ppm],
  ['p99 of |error|', (point) => point.abs_p99_ppm],
];

/** Errors below this are drawn at the foot of a logarithmic axis, in %. */
const LEAST_PCT = 0.001;

function errorOption(colors: Colors, points: readonly ErrorPoint[]) {
  return {
    grid: { ...grid(), bottom: 46, left: 64 },
    legend: legend(colors),
    tooltip: tooltip(colors, (value) => `${fixed(value, value < 1 ? 3 : 2)} %`),
    xAxis: categoryAxis(
      colors,
      'reserved share of a CPU, in %',
      points.map((point) => fixed(point.share_ppm / 10_000, 1)),
    ),
    yAxis: valueAxis(colors, 'size of the error, in %', {
      type: 'log',
      min: LEAST_PCT,
      nameGap: 48,
    }),
    series: ERROR_LINES.map(([name, value]) => ({
      type: 'line',
      name,
      symbolSize: 7,
      lineStyle: { width: 2 },
      data: points.map((point) => Math.max(LEAST_PCT, value(point) / 10_000)),
    })),
  };
}

const PRICES: readonly Column<Price>[] = [
  {
    key: 'term',
    title: 'Event',
    value: (row) => TERMS[row.term] ?? row.term,
  },
  {
    key: 'cost',
    title: 'Cost',
    numeric: true,
    value: (row) => row.cost_ns,
    render: (row) => <Figure of={nanoseconds(row.cost_ns)} />,
    help: 'CPU time of the host for each event.',
  },
  {
    key: 'error',
    title: 'Standard error',
    numeric: true,
    value: (row) => row.error_ns,
    render: (row) => (
      <Figure of={row.error_ns === null ? null : nanoseconds(row.error_ns)} />
    ),
  },
];

/** What the host's work for the I/O of instances costs. */
export function OverheadProfiles({ host }: { host: string }) {
  const found = useOverheadProfiles(host);
  return (
    <Loaded result={found}>
      {(profiles) =>
        profiles.length === 0 ? (
          <Empty title="Not measured yet">
            What packets and blocks of instances cost this host in CPU time.
          </Empty>
        ) : (
          <OverheadProfileView profiles={profiles} />
        )
      }
    </Loaded>
  );
}

function OverheadProfileView({
  profiles,
}: {
  profiles: readonly OverheadProfile[];
}) {
  const [source, setSource] = useState('');
  const profile =
    profiles.find((one) => one.source === source) ??
    profiles.find((one) => one.source === 'benchmark') ??
    profiles[0];
  const priced = useMemo(
    () => (profile?.prices ?? []).filter((price) => price.term !== 'idle_s'),
    [profile],
  );
  const draw = useMemo(
    () => (colors: Colors) => ({
      grid: { ...grid(), left: 210, right: 90, top: 8, bottom: 40 },
      tooltip: tooltip(colors, (value) => text(nanoseconds(value))),
      xAxis: {
        ...valueAxis(colors, 'CPU time of the host for each event', {
          nameGap: 26,
        }),
        axisLabel: {
          color: colors.faint,
          formatter: (value: number) => text(nanoseconds(value)),
          hideOverlap: true,
        },
      },
      yAxis: categoryAxis(
        colors,
        '',
        priced.map((price) => TERMS[price.term] ?? price.term),
        { inverse: true },
      ),
      series: [
        {
          type: 'bar',
          name: 'cost',
          barMaxWidth: 22,
          data: priced.map((price) => price.cost_ns),
          itemStyle: { color: colors.series[0], borderRadius: [0, 3, 3, 0] },
          label: {
            show: true,
            position: 'right',
            color: colors.text,
            formatter: ({ value }: { value: number }) =>
              text(nanoseconds(value)),
          },
        },
      ],
    }),
    [priced],
  );
  if (profile === undefined) {
    return null;
  }
  return (
    <>
      <div className="vs-buttons">
        {profiles.length > 1 && (
          <Choice
            label="Source of the profile"
            value={profile.source}
            onChange={setSource}
            options={profiles.map((one) => ({
              value: one.source,
              label:
                one.source === 'live' ? 'Instances in use' : 'Benchmark run',
            }))}
          />
        )}
        <State of={profile.good ? 'good fit' : 'poor fit'} />
        <span>
          {profile.good
            ? 'The prices explain what was measured.'
            : 'The prices do not explain what was measured, and are not used.'}
        </span>
      </div>
      <Chart
        height={60 + 34 * priced.length}
        label={`CPU time for each event: ${priced
          .map(
            (price) =>
              `${TERMS[price.term] ?? price.term} ${text(nanoseconds(price.cost_ns))}`,
          )
          .join(', ')}`}
        option={draw}
      />
      <DataTable
        id="prices"
        label="Prices of I/O"
        rows={profile.prices}
        columns={PRICES}
        rowKey={(row) => row.term}
        sort={{ key: 'cost', direction: 'desc' }}
      />
      <Facts
        of={[
          ['Explained variance (R²)', profile.r2 === null ? '–' : fixed(profile.r2, 3)],
          [
            'Unexplained, for each observation',
            <Figure
              of={
                profile.residual_ns === null
                  ? null
                  : nanoseconds(profile.residual_ns)
              }
            />,
          ],
          ['Observations', String(profile.n)],
        ]}
      />
      <About profile={profile} />
    </>
  );
}
