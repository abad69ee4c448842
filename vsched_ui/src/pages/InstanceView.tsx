// SPDX-License-Identifier: Apache-2.0

import { Alert, Button, ToggleGroup, ToggleGroupItem } from '@patternfly/react-core';
import { useMemo, useState } from 'react';
import { useParams } from 'react-router';

import {
  EVERY,
  type Result,
  useBalloon,
  usePolled,
  useReservation,
} from '../api/hooks';
import type { Bucket, Instance, Reservation, Sample } from '../api/types';
import { useInstanceSeconds, useInstanceSums } from '../api/usage';
import { RULES, useApi, useMayRead } from '../app/api';
import { BalloonActions, BalloonHistory, orderText } from '../components/BalloonPanel';
import {
  Chart,
  type Colors,
  grid,
  legend,
  timeAxis,
  tooltip,
  useCharts,
  valueAxis,
} from '../components/Chart';
import { EventList } from '../components/EventList';
import {
  Ago,
  Budget,
  Cpus,
  ErrorFigure,
  Figure,
  Micros,
  Moment,
  Percent,
  Term,
} from '../components/figures';
import { HostLink } from '../components/links';
import { OverrideForm } from '../components/OverrideForm';
import { RemoveOverride } from '../components/RemoveOverride';
import { Facts, Head, Section, Tile, Tiles } from '../components/Section';
import {
  Empty,
  Failure,
  Loaded,
  Loading,
  OutdatedNote,
  State,
} from '../components/states';
import { identityOf, titleOf } from '../model/identity';
import { withGaps } from '../model/series';
import { errorPpm, rateMcpu, sharePpm, withheldPpm } from '../model/shares';
import { count, cpus, fixed, nanoseconds, text } from '../model/units';

export function InstanceView() {
  useCharts();
  const { uuid = '' } = useParams();
  const { client } = useApi();
  const instance = usePolled(
    ['instance', uuid],
    async (signal) =>
      (
        await client.call('GET', '/v1/instances/{instance_uuid}', {
          path: { instance_uuid: uuid },
          signal,
        })
      ).instance,
    EVERY.list,
  );
  return (
    <Loaded key={uuid} result={instance} lines={8}>
      {(found) => <Whole instance={found} />}
    </Loaded>
  );
}

function Whole({ instance }: { instance: Instance }) {
  const reservation = useReservation(instance.instance_uuid);
  const { may } = useApi();
  const history = useMayRead('/v1/balloons/history');
  const events = useMayRead('/v1/events');
  const [form, setForm] = useState(false);
  // What there was when its removal was begun.
  const [removal, setRemoval] = useState<Reservation | null>(null);
  const held = reservation.data ?? null;
  const mayChange =
    reservation.data !== undefined &&
    instance.present &&
    may(held === null ? RULES.createReservation : RULES.updateReservation);
  return (
    <>
      <Head
        title={titleOf(identityOf(instance))}
        above={{ to: '/reservations', text: 'Reservations' }}
        state={held !== null && <State of={held.state} />}
        actions={
          <span className="vs-buttons">
            {mayChange && (
              <Button variant="primary" onClick={() => setForm(true)}>
                {held === null ? 'Reserve CPU time' : 'Change reservation'}
              </Button>
            )}
            {held?.source === 'override' && may(RULES.removeOverride) && (
              <Button variant="secondary" onClick={() => setRemoval(held)}>
                Remove override
              </Button>
            )}
          </span>
        }
      >
        <span className="vs-mono">{instance.instance_uuid}</span>
        {instance.host !== null && (
          <>
            {' '}
            on <HostLink name={instance.host} />
          </>
        )}
        , {instance.vcpus} vCPUs
        {instance.flavor_name !== null && `, flavor ${instance.flavor_name}`}
        {instance.project_id !== null && `, project ${instance.project_id}`}
        {!instance.present && '; no host lists it any more'}
      </Head>
      <Loaded result={reservation} lines={3}>
        {(found) =>
          found === null ? (
            <Alert
              isInline
              variant="info"
              title="Nothing is reserved for this instance"
            />
          ) : (
            <Held reservation={found} />
          )
        }
      </Loaded>
      <Usage instance={instance} reservation={held} />
      <div className="vs-columns">
        <Section title="Work of the host for its I/O">
          <Loaded result={reservation}>
            {(found) => <Io reservation={found} />}
          </Loaded>
        </Section>
        <Section title="Balloon">
          <BalloonState uuid={instance.instance_uuid} />
        </Section>
      </div>
      {history && (
        <Section title="History of balloons">
          <BalloonHistory
            id="history"
            query={{ instance_uuid: instance.instance_uuid }}
          />
        </Section>
      )}
      {events && (
        <Section title="Events">
          <EventList
            id="events"
            query={{ instance_uuid: instance.instance_uuid }}
          />
        </Section>
      )}
      {form && (
        <OverrideForm
          instance={instance}
          now={held}
          close={() => setForm(false)}
        />
      )}
      {removal !== null && (
        <RemoveOverride
          reservation={held ?? { ...removal, generation: 0 }}
          close={() => setRemoval(null)}
        />
      )}
    </>
  );
}

function Held({ reservation: one }: { reservation: Reservation }) {
  const enforced = one.enforced;
  return (
    <>
      {one.detail !== null && (
        <Alert
          isInline
          variant={one.state === 'refused' ? 'danger' : 'warning'}
          title={one.detail}
        >
          {one.code !== null && <code className="vs-code">{one.code}</code>}
        </Alert>
      )}
      <Tiles>
        <Tile
          title="Reserved"
          note={
            <>
              <Percent ppm={sharePpm(one.runtime_us, one.period_us)} /> of a CPU
              for each vCPU
            </>
          }
        >
          <Cpus mcpu={one.bandwidth_mcpu} />
        </Tile>
        <Tile
          title="Enforced"
          note={enforced === null ? 'nothing' : `by ${enforced.backend}`}
          level={
            enforced === null && one.state !== 'released' ? 'warning' : undefined
          }
        >
          <Cpus mcpu={enforced?.bandwidth_mcpu} />
        </Tile>
        <Tile title="Runtime and period" note={one.mode}>
          <Budget runtimeUs={one.runtime_us} periodUs={one.period_us} />
        </Tile>
        <Tile
          title="Source"
          note={
            one.generation === 0 ? 'its metadata' : `generation ${one.generation}`
          }
        >
          {one.source === 'metadata' ? 'flavor' : one.source}
        </Tile>
        <Tile title="Since" note={one.state}>
          <Ago at={one.since} everyMs={1_000} />
        </Tile>
        <Tile title="Compared with the kernel">
          <Ago at={one.attested_at} everyMs={1_000} />
        </Tile>
      </Tiles>
      {one.override !== null && (
        <p className="vs-small">
          Override by user {one.override.user_id ?? '–'}, changed{' '}
          <Moment at={one.override.updated_at} />
        </p>
      )}
    </>
  );
}

type Range = '5 min' | '1 h' | '6 h' | '7 d';

const RANGES: Record<
  Range,
  { ms: number; resolution: 'raw' | 'minute' | 'hour' }
> = {
  '5 min': { ms: 300_000, resolution: 'raw' },
  '1 h': { ms: 3_600_000, resolution: 'minute' },
  '6 h': { ms: 21_600_000, resolution: 'minute' },
  '7 d': { ms: 604_800_000, resolution: 'hour' },
};

/** How far apart the points of a series are at most, without a gap. */
const GAP_MS = { raw: 5_000, minute: 150_000, hour: 9_000_000 };

type UsageRow = Sample | Bucket;

function Usage({
  instance,
  reservation,
}: {
  instance: Instance;
  reservation: Reservation | null;
}) {
  const [range, setRange] = useState<Range>('5 min');
  const { ms, resolution } = RANGES[range];
  const uuid = instance.instance_uuid;
  const seconds = useInstanceSeconds(uuid, ms, resolution === 'raw');
  const sums = useInstanceSums(
    uuid,
    resolution === 'hour' ? 'hour' : 'minute',
    ms,
    resolution !== 'raw',
  );
  const found: Result<UsageRow[]> = resolution === 'raw' ? seconds : sums;
  const rows = useMemo(() => found.data ?? [], [found.data]);
  const drawGot = useMemo(
    () => (colors: Colors) => gotOption(colors, rows, GAP_MS[resolution]),
    [rows, resolution],
  );
  const drawCharges = useMemo(
    () => (colors: Colors) => chargeOption(colors, rows, GAP_MS[resolution]),
    [rows, resolution],
  );
  const total = useMemo(() => totals(rows), [rows]);
  const toggles = (
    <ToggleGroup aria-label="Range of the charts" isCompact>
      {(Object.keys(RANGES) as Range[]).map((one) => (
        <ToggleGroupItem
          key={one}
          text={one}
          buttonId={`range-${one.replace(' ', '')}`}
          isSelected={one === range}
          onChange={() => setRange(one)}
        />
      ))}
    </ToggleGroup>
  );
  return (
    <Section
      title="Reserved and got"
      actions={toggles}
      note={
        resolution === 'raw'
          ? 'By second, as the agent reports it.'
          : `Sums by ${resolution}.`
      }
    >
      <OutdatedNote of={found} what="The usage" />
      {found.data === undefined ? (
        found.error ? (
          <Failure error={found.error} retry={found.refetch} />
        ) : (
          <Loading />
        )
      ) : rows.length === 0 ? (
        <Empty title="No usage in this range" />
      ) : (
        <>
          <Facts
            of={[
              ['Got', <Cpus mcpu={total.gotMcpu} />],
              [
                'Reserved',
                <Cpus
                  mcpu={
                    total.reservedMcpu ?? reservation?.bandwidth_mcpu ?? null
                  }
                />,
              ],
              [
                <Term help="(got − reserved) / reserved. Below 0 where the instance was idle, too.">
                  Error
                </Term>,
                <ErrorFigure ppm={total.errorPpm} />,
              ],
              [
                <Term help="Of what is reserved: the part that its vCPUs were ready to use and did not get.">
                  Withheld
                </Term>,
                <Percent ppm={total.withheldPpm} />,
              ],
              [
                <Term help="CPU time for which vCPUs were ready to run and did not, in CPUs.">
                  Waited
                </Term>,
                <Cpus mcpu={total.waitMcpu} />,
              ],
              [
                <Term help="Mean wait before a vCPU began to run.">
                  Wait before a run
                </Term>,
                <Micros us={total.waitPerRunUs} />,
              ],
            ]}
          />
          <Chart
            height={260}
            label={`CPU time of ${titleOf(identityOf(instance))} over ${range}: got ${cpusText(total.gotMcpu)} on average, reserved ${cpusText(total.reservedMcpu)}`}
            option={drawGot}
          />
          <h3 className="vs-subtitle">CPU time that the host used for it</h3>
          <Chart
            height={180}
            label={`CPU time that the host used for ${titleOf(identityOf(instance))} over ${range}`}
            option={drawCharges}
          />
        </>
      )}
    </Section>
  );
}

/** CPUs in words; those that are not reserved are none. */
function cpusText(mcpu: number | null): string {
  return mcpu === null ? 'nothing' : text(cpus(mcpu));
}

/** The sums of rows; what is reserved counts where something was. */
function totals(rows: readonly UsageRow[]) {
  const sum = (value: (row: UsageRow) => number | null) =>
    rows.reduce((total, row) => total + (value(row) ?? 0), 0);
  const interval = sum((row) => row.interval_us);
  const reservedRows = rows.filter((row) => row.promised_us !== null);
  const reserved = reservedRows.reduce(
    (total, row) => total + (row.promised_us ?? 0),
    0,
  );
  const reservedInterval = reservedRows.reduce(
    (total, row) => total + row.interval_us,
    0,
  );
  const gotReserved = reservedRows.reduce(
    (total, row) =>
      total + ('promised_guest_us' in row ? row.promised_guest_us : row.guest_us),
    0,
  );
  const waited = sum((row) => row.wait_us);
  const runs = rows.every((row) => row.executions !== null)
    ? sum((row) => row.executions)
    : 0;
  const withheld = reservedRows.reduce(
    (total, row) =>
      total +
      ((withheldPpm(
        'promised_guest_us' in row ? row.promised_guest_us : row.guest_us,
        row.wait_us,
        row.promised_us,
      ) ?? 0) *
        (row.promised_us ?? 0)) /
        1_000_000,
    0,
  );
  return {
    gotMcpu: interval === 0 ? null : rateMcpu(sum((row) => row.guest_us), interval),
    reservedMcpu:
      reservedInterval === 0 ? null : rateMcpu(reserved, reservedInterval),
    errorPpm: errorPpm(gotReserved, reserved),
    withheldPpm:
      reserved === 0 ? null : Math.round((withheld * 1_000_000) / reserved),
    waitMcpu: interval === 0 ? null : rateMcpu(waited, interval),
    waitPerRunUs: runs === 0 ? null : waited / runs,
  };
}

function line(
  rows: readonly UsageRow[],
  gapMs: number,
  value: (row: UsageRow) => number | null,
) {
  return withGaps(
    rows.map((row) => {
      const found = value(row);
      return [Date.parse(row.at), found === null ? null : found / 1000];
    }),
    gapMs,
  );
}

function gotOption(colors: Colors, rows: readonly UsageRow[], gapMs: number) {
  return {
    grid: grid(),
    legend: legend(colors),
    tooltip: tooltip(colors, (value) => `${fixed(value, 3)} CPU`),
    xAxis: timeAxis(colors),
    yAxis: valueAxis(colors, 'CPUs', { min: 0 }),
    series: [
      {
        type: 'line',
        name: 'got',
        showSymbol: false,
        lineStyle: { width: 2 },
        areaStyle: { opacity: 0.12 },
        data: line(rows, gapMs, (row) => rateMcpu(row.guest_us, row.interval_us)),
      },
      {
        type: 'line',
        name: 'waited',
        showSymbol: false,
        lineStyle: { width: 1.5, type: 'dotted' },
        data: line(rows, gapMs, (row) => rateMcpu(row.wait_us, row.interval_us)),
      },
      {
        type: 'line',
        name: 'reserved',
        step: 'end',
        showSymbol: false,
        lineStyle: { width: 2, type: 'dashed' },
        data: line(rows, gapMs, (row) =>
          row.promised_us === null
            ? null
            : rateMcpu(row.promised_us, row.interval_us),
        ),
      },
    ],
  };
}

function chargeOption(colors: Colors, rows: readonly UsageRow[], gapMs: number) {
  const area = (name: string, value: (row: UsageRow) => number) => ({
    type: 'line',
    name,
    stack: 'host',
    showSymbol: false,
    lineStyle: { width: 1 },
    areaStyle: { opacity: 0.6 },
    data: line(rows, gapMs, (row) => rateMcpu(value(row), row.interval_us)),
  });
  return {
    color: colors.series.slice(4, 6),
    grid: grid(),
    legend: legend(colors),
    tooltip: tooltip(colors, (value) => `${fixed(value, 3)} CPU`),
    xAxis: timeAxis(colors),
    yAxis: valueAxis(colors, 'CPUs', { min: 0 }),
    series: [
      area('its threads (emulator, I/O, vhost)', (row) => row.direct_us),
      area('shared (interrupts; an estimate)', (row) => row.shared_us),
    ],
  };
}

function Io({ reservation }: { reservation: Reservation | null }) {
  const io = reservation?.io ?? null;
  const fine = reservation?.communication ?? null;
  if (io === null && fine === null) {
    return (
      <Empty title="Left alone">
        The threads of the host for this instance hold no reservation.
      </Empty>
    );
  }
  return (
    <>
      {io?.detail && (
        <Alert isInline variant="warning" title={io.detail} />
      )}
      {fine?.detail && <Alert isInline variant="info" title={fine.detail} />}
      <Facts
        of={[
          ...(io === null
            ? []
            : ([
                ['Charging', io.charging],
                ['Threads', String(io.threads)],
                [
                  'Their runtime',
                  <Budget runtimeUs={io.runtime_us} periodUs={io.period_us} />,
                ],
                ['Left to each vCPU', <Micros us={io.guest_runtime_us} />],
                ['Charged', <Cpus mcpu={io.charged_mcpu} />],
                ['Debt', <Micros us={io.debt_us} />],
              ] as const)),
          ...(fine === null
            ? []
            : ([
                ['Periods divided by', String(fine.granularity)],
                [
                  'One part',
                  <>
                    <Figure
                      of={
                        fine.runtime_ns === null
                          ? null
                          : nanoseconds(fine.runtime_ns)
                      }
                    />{' '}
                    every{' '}
                    <Figure
                      of={
                        fine.period_ns === null
                          ? null
                          : nanoseconds(fine.period_ns)
                      }
                    />
                  </>,
                ],
              ] as const)),
        ]}
      />
    </>
  );
}

function BalloonState({ uuid }: { uuid: string }) {
  const found = useBalloon(uuid);
  return (
    <Loaded result={found}>
      {(balloon) =>
        balloon === null ? (
          <Empty title="Not ballooned">
            Its flavor does not allow it, and nothing is ordered.
          </Empty>
        ) : (
          <>
            <Facts
              of={[
                ['State', <State of={balloon.state} />],
                [
                  'vCPUs in use',
                  balloon.online_vcpus === null
                    ? '–'
                    : `${balloon.online_vcpus} of ${balloon.vcpus}`,
                ],
                [
                  'At least',
                  balloon.floor_vcpus === null
                    ? '–'
                    : count(balloon.floor_vcpus, 'vCPU'),
                ],
                ['Since', <Ago at={balloon.since} everyMs={1_000} />],
                ['Not again before', <Ago at={balloon.not_before} everyMs={1_000} />],
                ['Order', orderText(balloon)],
                ['Failures in a row', String(balloon.failures ?? '–')],
              ]}
            />
            {balloon.cause !== null && (
              <p className="vs-note">{balloon.cause}</p>
            )}
            {balloon.order?.detail && (
              <Alert isInline variant="warning" title={balloon.order.detail} />
            )}
            <BalloonActions balloon={balloon} />
          </>
        )
      }
    </Loaded>
  );
}
