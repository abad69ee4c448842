// SPDX-License-Identifier: Apache-2.0

import { useMemo } from 'react';
import { Link } from 'react-router';

import {
  EVERY,
  useFleet,
  useFleetUsage,
  useHosts,
  useList,
} from '../api/hooks';
import type { Bucket, Host } from '../api/types';
import { type Column, DataTable } from '../components/DataTable';
import { EventList } from '../components/EventList';
import { Cpus, ErrorFigure, Figure, Percent, Term } from '../components/figures';
import { Histogram } from '../components/Histogram';
import { HostLink } from '../components/links';
import { Head, Section, Tile, Tiles } from '../components/Section';
import {
  Empty,
  Failure,
  Loaded,
  Loading,
  NoHost,
  OutdatedNote,
} from '../components/states';
import { Troubles } from '../components/Troubles';
import { type Fleet, isDown } from '../model/fleet';
import { gotMcpu, withheldOf } from '../model/series';
import { usedPpm } from '../model/shares';
import { count, fixed } from '../model/units';

const BAD_STATES = ['refused', 'degraded'] as const;

export function Overview() {
  const hosts = useHosts();
  const fleet = useFleet();
  const usage = useFleetUsage();
  const bad = useList(
    '/v1/reservations',
    { state: BAD_STATES },
    EVERY.list,
  );
  const pending = useList(
    '/v1/reservations',
    { state: ['pending'] },
    EVERY.list,
  );
  const jobs = useList('/v1/jobs', { state: ['failed'] }, EVERY.slow);
  return (
    <>
      <Head title="Overview" />
      {hosts.data === undefined ? (
        hosts.error ? (
          <Failure error={hosts.error} retry={hosts.refetch} />
        ) : (
          <Loading lines={3} />
        )
      ) : (
        <>
          {/* What an incomplete list lacks is stated below. */}
          {hosts.complete && <OutdatedNote of={hosts} what="The list of hosts" />}
          <Figures hosts={hosts.data} usage={usage.data} fleet={fleet.data} />
          {!hosts.complete && (
            <p className="vs-small" role="status">
              {hosts.error
                ? `The list of hosts is not complete: the figures are of ${count(hosts.data.length, 'host')}.`
                : `Reading the rest of the hosts: the figures are of the first ${fixed(hosts.data.length, 0)}.`}
            </p>
          )}
        </>
      )}
      <div className="vs-columns">
        <Section title="What is wrong">
          <Troubles
            hosts={hosts.data}
            fleet={fleet.data}
            reservations={[...(bad.data ?? []), ...(pending.data ?? [])]}
            jobs={jobs.data ?? []}
            lists={[hosts, bad, pending, jobs]}
          />
        </Section>
        <Section
          title="Capacity in use"
          note="How many hosts have reserved which part of their capacity."
        >
          <Loaded result={hosts}>
            {(found) => <Distribution hosts={found} fleet={fleet.data} />}
          </Loaded>
        </Section>
      </div>
      <div className="vs-columns">
        <Section
          title="Reserved CPU time that was withheld"
          note="Hosts by the newest minute: what reserved instances were ready to use, and did not get."
          actions={<Link to="/hosts?hosts.sort=withheld&hosts.dir=desc">All hosts</Link>}
        >
          <Loaded result={usage}>
            {(found) => <Withheld usage={found} />}
          </Loaded>
        </Section>
        <Section
          title="Largest measured errors"
          note="The most that a benchmark run found missing of a reservation, in 99 of 100 seconds."
          actions={<Link to="/evidence">All certificates</Link>}
        >
          <Loaded result={fleet}>
            {(found) => <Measured fleet={found} />}
          </Loaded>
        </Section>
      </div>
      <Section title="Recent events" actions={<Link to="/events">All events</Link>}>
        <EventList id="recent" query={{}} size={10} plain />
      </Section>
    </>
  );
}

/** What a host has admitted, as recently as it is known. */
function admitted(host: Host, fleet: Fleet | undefined): number | null {
  return fleet?.hosts.get(host.name)?.admitted_mcpu ?? host.admitted_mcpu;
}

function Figures({
  hosts,
  usage,
  fleet,
}: {
  hosts: readonly Host[];
  usage: ReadonlyMap<string, Bucket> | undefined;
  fleet: Fleet | undefined;
}) {
  const sum = (value: (host: Host) => number | null) =>
    hosts.reduce((total, host) => total + (value(host) ?? 0), 0);
  const capacity = sum((host) => host.capacity_mcpu);
  const reserved = sum((host) => admitted(host, fleet));
  const down = hosts.filter((host) => isDown(host, fleet)).length;
  const got =
    usage === undefined
      ? null
      : sum((host) => {
          const row = usage.get(host.name);
          return row === undefined ? null : gotMcpu(row);
        });
  return (
    <Tiles>
      <Tile
        title="Hosts"
        level={down > 0 ? 'danger' : undefined}
        note={
          down > 0
            ? `${count(down, 'host')} down`
            : hosts.length > 0
              ? 'all report'
              : 'none reports yet'
        }
      >
        {fixed(hosts.length, 0)}
      </Tile>
      <Tile title="Instances" note="that hosts list now">
        {fixed(
          sum((host) => host.instances),
          0,
        )}
      </Tile>
      <Tile title={<Term help="What reservations may use in total, as the kernels admit it.">Capacity</Term>}>
        <Cpus mcpu={capacity} />
      </Tile>
      <Tile
        title={<Term help="What applied reservations use of the capacity. One that a CFS quota enforces is a limit without a guarantee, and uses none.">Reserved</Term>}
        note={
          <>
            <Percent ppm={usedPpm(reserved, capacity)} /> of the capacity
          </>
        }
      >
        <Cpus mcpu={reserved} />
      </Tile>
      <Tile title="Free" note="for further reservations">
        <Cpus mcpu={Math.max(0, capacity - reserved)} />
      </Tile>
      <Tile
        title={<Term help="CPU time that instances with a reservation used in the newest minute that is summed up.">Got</Term>}
        note={
          got === null || reserved === 0 ? (
            'in the newest minute'
          ) : (
            <>
              <Percent ppm={usedPpm(got, reserved)} /> of what is reserved
            </>
          )
        }
      >
        <Cpus mcpu={got} />
      </Tile>
    </Tiles>
  );
}

const BINS = 10;

function Distribution({
  hosts,
  fleet,
}: {
  hosts: readonly Host[];
  fleet: Fleet | undefined;
}) {
  const bins = useMemo(() => {
    const found = Array.from({ length: BINS }, () => 0);
    for (const host of hosts) {
      const part = usedPpm(admitted(host, fleet), host.capacity_mcpu);
      if (part !== null) {
        const bin = Math.min(BINS - 1, Math.floor((part * BINS) / 1_000_000));
        found[bin] = (found[bin] ?? 0) + 1;
      }
    }
    return found;
  }, [hosts, fleet]);
  if (hosts.length === 0) {
    return <NoHost />;
  }
  return (
    <Histogram
      label={`Hosts by the part of their capacity that is reserved: ${bins
        .map((value, index) => `${index * 10} to ${(index + 1) * 10} %: ${value}`)
        .join('; ')}`}
      axis="part of the capacity that is reserved, in %"
      bars={bins.map((value, index) => ({
        title: `${index * 10}–${(index + 1) * 10}`,
        value,
      }))}
    />
  );
}

const WITHHELD: readonly Column<Bucket>[] = [
  {
    key: 'host',
    title: 'Host',
    value: (row) => row.host,
    render: (row) => <HostLink name={row.host} />,
  },
  {
    key: 'withheld',
    title: 'Withheld',
    numeric: true,
    value: withheldOf,
    render: (row) => <Percent ppm={withheldOf(row)} />,
    help: 'Of what is reserved: the part that was neither used nor left idle. At most that; instances without a reservation wait too.',
  },
  {
    key: 'error',
    title: 'Error',
    numeric: true,
    value: (row) => row.error_ppm,
    render: (row) => <ErrorFigure ppm={row.error_ppm} />,
    help: '(got − reserved) / reserved. Idle instances are below 0, and lack nothing.',
  },
  {
    key: 'reserved',
    title: 'Reserved',
    numeric: true,
    value: (row) => row.promised_mcpu,
    render: (row) => <Cpus mcpu={row.promised_mcpu} />,
  },
  {
    key: 'got',
    title: 'Got',
    numeric: true,
    value: gotMcpu,
    render: (row) => <Cpus mcpu={gotMcpu(row)} />,
  },
];

function Withheld({ usage }: { usage: ReadonlyMap<string, Bucket> }) {
  const worst = useMemo(
    () =>
      [...usage.values()]
        .filter((row) => (withheldOf(row) ?? 0) > 0)
        .sort((one, other) => (withheldOf(other) ?? 0) - (withheldOf(one) ?? 0))
        .slice(0, 8),
    [usage],
  );
  return (
    <DataTable
      id="withheld"
      label="Hosts by what they withheld"
      plain
      rows={worst}
      columns={WITHHELD}
      rowKey={(row) => row.host ?? ''}
      sort={{ key: 'withheld', direction: 'desc' }}
      empty={
        <Empty title={usage.size === 0 ? 'No usage in the last minutes' : 'Nothing was withheld'} />
      }
    />
  );
}

interface Found {
  host: string;
  backend: string;
  period_us: number;
  share_ppm: number;
  lower_ppm: number;
}

const MEASURED: readonly Column<Found>[] = [
  {
    key: 'host',
    title: 'Host',
    value: (row) => row.host,
    render: (row) => <HostLink name={row.host} />,
  },
  {
    key: 'lower',
    title: 'Error',
    numeric: true,
    value: (row) => row.lower_ppm,
    render: (row) => <ErrorFigure ppm={row.lower_ppm} />,
    help: '99 of 100 windows of one second have an error that is not below this.',
  },
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
    render: (row) => <Figure of={{ value: fixed(row.period_us / 1000, 1), unit: 'ms' }} />,
  },
  {
    key: 'share',
    title: 'Share',
    numeric: true,
    value: (row) => row.share_ppm,
    render: (row) => <Percent ppm={row.share_ppm} />,
    help: 'What was reserved in that measurement, of a CPU.',
  },
];

function Measured({ fleet }: { fleet: Fleet }) {
  const worst = useMemo(() => {
    const found: Found[] = [];
    for (const host of fleet.hosts.values()) {
      let most: Found | null = null;
      for (const one of host.certificates) {
        one.lowers_ppm.forEach((lower, index) => {
          if (lower !== null && (most === null || lower < most.lower_ppm)) {
            most = {
              host: host.name,
              backend: one.backend,
              period_us: one.period_us,
              share_ppm: one.shares_ppm[index] ?? 0,
              lower_ppm: lower,
            };
          }
        });
      }
      if (most !== null) {
        found.push(most);
      }
    }
    return found.sort((one, other) => one.lower_ppm - other.lower_ppm).slice(0, 8);
  }, [fleet]);
  return (
    <DataTable
      id="measured"
      label="Hosts by their largest measured error"
      plain
      rows={worst}
      columns={MEASURED}
      rowKey={(row) => row.host}
      sort={{ key: 'lower', direction: 'asc' }}
      empty={
        <Empty title="No host has measured its error profile">
          “Measure now” on the view of a host starts a run.
        </Empty>
      }
    />
  );
}
