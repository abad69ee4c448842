// SPDX-License-Identifier: Apache-2.0

import { Tooltip } from '@patternfly/react-core';
import { type ReactNode, useSyncExternalStore } from 'react';

import { useApi } from '../app/api';
import { clockOf } from '../app/clocks';
import * as units from '../model/units';

/** A number with its unit; a dash for what is unknown. */
export function Figure({ of }: { of: units.Quantity | null }) {
  if (of === null) {
    return <Unknown />;
  }
  return (
    <span className="vs-figure">
      {of.value}
      {of.unit !== '' && (
        <>
          {'\u00a0'}
          <span className="vs-unit">{of.unit}</span>
        </>
      )}
    </span>
  );
}

export function Unknown({ why }: { why?: string }) {
  return (
    <span className="vs-unknown" title={why ?? 'not known'}>
      {units.UNKNOWN}
    </span>
  );
}

export function Cpus({ mcpu }: { mcpu: number | null | undefined }) {
  return <Figure of={mcpu === null || mcpu === undefined ? null : units.cpus(mcpu)} />;
}

export function Percent({ ppm }: { ppm: number | null | undefined }) {
  return (
    <Figure of={ppm === null || ppm === undefined ? null : units.percent(ppm)} />
  );
}

export function ErrorFigure({ ppm }: { ppm: number | null | undefined }) {
  return (
    <Figure
      of={ppm === null || ppm === undefined ? null : units.signedPercent(ppm)}
    />
  );
}

export function Micros({ us }: { us: number | null | undefined }) {
  return (
    <Figure
      of={us === null || us === undefined ? null : units.microseconds(us)}
    />
  );
}

/** Runtime in every period: 12 ms / 20 ms. */
export function Budget({
  runtimeUs,
  periodUs,
}: {
  runtimeUs: number | null;
  periodUs: number | null;
}) {
  if (runtimeUs === null || periodUs === null) {
    return <Unknown />;
  }
  return (
    <span className="vs-figure">
      <Micros us={runtimeUs} /> <span className="vs-unit">every</span>{' '}
      <Micros us={periodUs} />
    </span>
  );
}

/** The clock of the server, which ticks with the page. */
export function useNow(everyMs = 1000): number {
  const { client } = useApi();
  const clock = clockOf(client, everyMs);
  return useSyncExternalStore(clock.subscribe, clock.now);
}

/**
 * How long ago something was; the moment itself where the mouse rests.
 *
 * It follows the clock by itself: a table is not drawn again when time passes.
 */
export function Ago({
  at,
  everyMs = 5_000,
}: {
  at: string | null;
  everyMs?: number;
}) {
  const now = useNow(everyMs);
  if (at === null) {
    return <Unknown />;
  }
  // What has happened since the last tick is not yet to come.
  const present = Math.max(now, Math.min(Date.parse(at), now + everyMs));
  return (
    <time dateTime={at} title={units.moment(at)} className="vs-figure">
      {units.ago(at, present)}
    </time>
  );
}

export function Moment({ at }: { at: string | null }) {
  if (at === null) {
    return <Unknown />;
  }
  return (
    <time dateTime={at} title={at} className="vs-figure">
      {units.moment(at)}
    </time>
  );
}

/** A bar: the part of a whole that is in use, with its figures beside. */
export function Meter({
  used,
  total,
  label,
}: {
  used: number | null;
  total: number | null;
  label: string;
}) {
  if (used === null || total === null) {
    return <Unknown />;
  }
  const part = total > 0 ? Math.min(1, used / total) : used > 0 ? 1 : 0;
  const level = part >= 0.999 ? 'full' : part >= 0.85 ? 'high' : 'low';
  return (
    <span className="vs-meter">
      <span
        className="vs-meter__track"
        role="meter"
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(part * 100)}
        aria-valuetext={`${units.text(units.cpus(used))} of ${units.text(units.cpus(total))}`}
      >
        <span
          className={`vs-meter__bar vs-meter__bar--${level}`}
          style={{ width: `${part * 100}%` }}
        />
      </span>
      <Cpus mcpu={used} />
    </span>
  );
}

/** A term that is explained where the mouse or the focus rests. */
export function Term({ children, help }: { children: ReactNode; help: string }) {
  return (
    <Tooltip content={help}>
      <span className="vs-term" tabIndex={0}>
        {children}
      </span>
    </Tooltip>
  );
}
