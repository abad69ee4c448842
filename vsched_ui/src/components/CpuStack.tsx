// SPDX-License-Identifier: Apache-2.0

import { useMemo } from 'react';

import { useHostSeconds, useInstancesSeconds } from '../api/usage';
import type { Host, Instance } from '../api/types';
import { identityOf, titleOf } from '../model/identity';
import {
  HOST_OWN,
  HOST_WORK,
  OTHERS,
  STEAL,
  type Stack,
  stack,
} from '../model/series';
import { fixed, short } from '../model/units';
import {
  Chart,
  type Colors,
  grid,
  legend,
  timeAxis,
  tooltip,
  valueAxis,
} from './Chart';
import { Empty, Failure, Loading, OutdatedNote } from './states';

const LAYERS = 8;
const LONGEST_MS = 300_000;
const SHORTEST_MS = 20_000;
/** So many samples of instances are read at first, at most. */
const SAMPLES = 3_000;

/** How far back the chart goes: less where there are many instances. */
function windowOf(instances: number): number {
  const seconds = Math.floor(SAMPLES / Math.max(1, instances)) * 1000;
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, seconds));
}

/** Who uses the CPUs of a host: a stack by instance that grows. */
export function CpuStack({
  host,
  instances,
}: {
  host: Host;
  instances: readonly Instance[];
}) {
  const windowMs = windowOf(instances.length);
  const seconds = useHostSeconds(host.name, windowMs);
  const samples = useInstancesSeconds(host.name, windowMs, instances.length > 0);
  const found = useMemo(
    () => stack(seconds.data ?? [], samples.data ?? [], LAYERS),
    [seconds.data, samples.data],
  );
  const names = useMemo(
    () => new Map(
        instances.map((one) => [one.instance_uuid, titleOf(identityOf(one))]),
      ),
    [instances],
  );
  const cpus = seconds.data?.at(-1)?.cpus ?? host.cpus ?? null;
  const draw = useMemo(
    () => (colors: Colors) => option(colors, found, names, cpus),
    [found, names, cpus],
  );
  // Without those of the instances the host would look as if none ran.
  const missing = [seconds, ...(instances.length > 0 ? [samples] : [])].filter(
    (one) => one.data === undefined,
  );
  if (missing.length > 0) {
    const failed = missing.find((one) => one.error);
    return failed?.error ? (
      <Failure error={failed.error} retry={failed.refetch} />
    ) : (
      <Loading />
    );
  }
  if (found.times.length === 0) {
    return (
      <Empty title="No usage in the last minutes">
        The agent of this host has reported none.
      </Empty>
    );
  }
  return (
    <>
      <OutdatedNote of={seconds} what="The usage of the host" />
      {instances.length > 0 && (
        <OutdatedNote of={samples} what="The usage of the instances" />
      )}
      <Chart
        height={320}
        label={`CPU time of ${host.name} by instance, in CPUs, stacked. In the newest second: ${newest(found, names)}`}
        option={draw}
      />
    </>
  );
}

function nameOf(key: string, names: ReadonlyMap<string, string>): string {
  return [OTHERS, HOST_WORK, HOST_OWN, STEAL].includes(key)
    ? key
    : (names.get(key) ?? short(key));
}

function newest(found: Stack, names: ReadonlyMap<string, string>): string {
  return found.layers
    .map(
      ({ key, values }) =>
        `${nameOf(key, names)} ${fixed(values.at(-1) ?? 0, 2)} CPU`,
    )
    .join(', ');
}

function option(
  colors: Colors,
  found: Stack,
  names: ReadonlyMap<string, string>,
  cpus: number | null,
) {
  const fixedColors: Record<string, string> = {
    [OTHERS]: colors.neutral,
    [HOST_WORK]: colors.host,
    [HOST_OWN]: colors.own,
    [STEAL]: colors.alarm,
  };
  return {
    grid: { ...grid(), top: 56 },
    legend: legend(colors),
    tooltip: tooltip(colors, (value) => `${fixed(value, 2)} CPU`),
    xAxis: timeAxis(colors),
    yAxis: valueAxis(
      colors,
      'CPUs',
      cpus === null ? {} : { min: 0, max: cpus, interval: cpus / 4 },
    ),
    series: found.layers.map(({ key, values }, index) => {
      const color =
        fixedColors[key] ?? colors.series[index % colors.series.length];
      return {
        type: 'line',
        // Two servers may have the same name; series are told apart by it.
        name: nameOf(key, names),
        id: key,
        stack: 'cpu',
        step: false,
        showSymbol: false,
        lineStyle: { width: 1, color },
        itemStyle: { color },
        areaStyle: { color, opacity: 0.75 },
        emphasis: { disabled: true },
        data: found.times.map((time, place) => [time, values[place] ?? 0]),
      };
    }),
  };
}
