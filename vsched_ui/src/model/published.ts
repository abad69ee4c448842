// SPDX-License-Identifier: Apache-2.0

// The project's own measurements. "python -m benchmarks.published" writes
// published.json from the records.

import file from '../published.json';
import { fixed } from './units';

/** A run that is kept. */
export interface Run {
  when: string;
  commit: string;
  /** Whether its tree had changes that no commit has. */
  dirty: boolean;
  machine: string;
  /** Of the CPUs' time; null of runs from before it was kept. */
  stolen_pct: number | null;
}

/** What a metric is to reach, and what runs gave. */
export interface Target {
  metric: string;
  target: string;
  unit: string;
  source: string;
  /** Of the newest run; null when it did not measure this. */
  ours: number | null;
  /** 0 when the target is met. */
  missed_by: number | null;
  least: number | null;
  most: number | null;
  runs: number;
  runs_met: number;
}

export interface Benchmark {
  name: string;
  title: string;
  /** The newest; null when there is none. */
  run: Run | null;
  targets: readonly Target[];
}

export const BENCHMARKS: readonly Benchmark[] = file.benchmarks;

export const VERDICTS = ['missed', 'not measured', 'met', 'no target'] as const;

export type Verdict = (typeof VERDICTS)[number];

/** One target of a benchmark; null of a benchmark that has none. */
export interface PublishedRow {
  benchmark: Benchmark;
  target: Target | null;
  verdict: Verdict;
}

function verdictOf(target: Target): Verdict {
  if (target.missed_by === null) {
    return 'not measured';
  }
  return target.missed_by === 0 ? 'met' : 'missed';
}

export function publishedRows(
  benchmarks: readonly Benchmark[],
): PublishedRow[] {
  return benchmarks.flatMap((benchmark): PublishedRow[] =>
    benchmark.targets.length === 0
      ? [{ benchmark, target: null, verdict: 'no target' }]
      : benchmark.targets.map((target) => ({
          benchmark,
          target,
          verdict: verdictOf(target),
        })),
  );
}

/** How many rows have a verdict. */
export function countOf(
  rows: readonly PublishedRow[],
  verdict: Verdict,
): number {
  return rows.filter((row) => row.verdict === verdict).length;
}

/** When the newest run of all was; null without any. */
export function newestRun(benchmarks: readonly Benchmark[]): string | null {
  return (
    benchmarks
      .flatMap((one) => one.run?.when ?? [])
      // All are in UTC, and in the same form.
      .sort()
      .at(-1) ?? null
  );
}

/** A figure with the digits that the file has. */
export function figure(value: number): string {
  const written = String(value);
  return written.includes('e')
    ? written.replaceAll('-', '−')
    : fixed(value, written.split('.')[1]?.length ?? 0);
}
