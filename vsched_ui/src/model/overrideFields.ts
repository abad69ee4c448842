// SPDX-License-Identifier: Apache-2.0

// The fields of an override besides its runtime and its period: what the form
// shows of each, and which values it accepts.

import type { Wanted } from '../api/types';
import { number } from './numbers';

export type FieldName = Exclude<keyof Wanted, 'runtime_us' | 'period_us'>;

/** Each field as text; empty for what the flavor has. */
export type FieldDraft = Record<FieldName, string>;

interface Shape {
  title: string;
  help: string;
}

export interface ChoiceShape extends Shape {
  kind: 'choice';
  /** Values as text, each with its label. */
  options: readonly (readonly [string, string])[];
}

export interface NumberShape extends Shape {
  kind: 'number';
  unit: string;
  least: number;
  most: number;
  whole: boolean;
}

const FLAVOR = ['', 'the flavor’s'] as const;

/** In the order of the form; the compiler misses a field that is new. */
export const FIELDS: Readonly<Record<FieldName, ChoiceShape | NumberShape>> = {
  mode: {
    kind: 'choice',
    title: 'Mode',
    help: 'Whether it may use idle CPU time besides what is reserved.',
    options: [
      ['capped', 'capped: no more than that'],
      ['work_conserving', 'work_conserving: idle time as well'],
    ],
  },
  backend: {
    kind: 'choice',
    title: 'Backend',
    help: 'What must enforce it. cfs is a limit without a guarantee.',
    options: [
      ['', 'the best that the host has'],
      ['deadline', 'deadline'],
      ['cfs', 'cfs'],
    ],
  },
  io_charging: {
    kind: 'choice',
    title: 'Charging of I/O',
    help:
      'What the host’s work on its I/O is taken from. auto: capacity that is ' +
      'free. charge: the reservation. overprovision: capacity on top of it. ' +
      'none: it is neither held nor charged.',
    options: [
      FLAVOR,
      ['auto', 'auto'],
      ['charge', 'charge'],
      ['overprovision', 'overprovision'],
      ['none', 'none'],
    ],
  },
  comm_aware: {
    kind: 'choice',
    title: 'Communication-aware',
    help:
      'Whether runtime and period are divided by the same number while it ' +
      'waits on packets. Its bandwidth stays the same.',
    options: [FLAVOR, ['true', 'yes'], ['false', 'no']],
  },
  max_alloc_error_pct: {
    kind: 'number',
    title: 'Largest allocation error',
    help:
      'The most that its host may have shown in one second, of the ' +
      'reservation.',
    unit: '%',
    least: 0.1,
    most: 100,
    whole: false,
  },
  balloon: {
    kind: 'choice',
    title: 'Balloon',
    help:
      'Whether vCPUs may be taken offline while they only wait for each ' +
      'other.',
    options: [FLAVOR, ['off', 'off'], ['auto', 'auto']],
  },
  min_vcpus: {
    kind: 'number',
    title: 'Ballooning leaves at least',
    help: 'Needs ballooning: choose auto unless the flavor has it.',
    unit: 'vCPUs',
    least: 1,
    most: 1024,
    whole: true,
  },
  weight: {
    kind: 'number',
    title: 'Weight',
    help:
      'Its part of the CPUs relative to other instances, when ballooning ' +
      'divides them; 100 in a flavor without one.',
    unit: '',
    least: 1,
    most: 10_000,
    whole: true,
  },
};

export const FIELD_NAMES = Object.keys(FIELDS) as readonly FieldName[];

/** What the text of a field means to the API; null for the flavor’s. */
export function fieldValue(
  name: FieldName,
  text: string,
): string | number | boolean | null {
  const found = text.trim();
  if (found === '') {
    return null;
  }
  if (FIELDS[name].kind === 'number') {
    return number(found);
  }
  return name === 'comm_aware' ? found === 'true' : found;
}

/** The text of a field for what the API has. */
export function fieldText(value: string | number | boolean | null): string {
  return value === null ? '' : String(value);
}

/**
 * What is wrong with the text of a field.
 *
 * @param most - the largest number, if it is less than for any instance.
 */
export function fieldFault(
  name: FieldName,
  text: string,
  most = Infinity,
): string | undefined {
  const shape = FIELDS[name];
  if (shape.kind === 'choice' || text.trim() === '') {
    return undefined;
  }
  const value = number(text);
  const largest = Math.min(shape.most, most);
  if (
    value !== null &&
    value >= shape.least &&
    value <= largest &&
    (!shape.whole || Number.isInteger(value))
  ) {
    return undefined;
  }
  const range = `${shape.least} to ${largest} ${shape.unit}`.trimEnd();
  return `${shape.whole ? 'a whole number, ' : ''}${range}, or empty for the flavor’s`;
}
