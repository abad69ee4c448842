// SPDX-License-Identifier: Apache-2.0

// Numbers as people read them. Each carries its unit; what is unknown is a
// dash.

export const UNKNOWN = '–';

/** A number and its unit. */
export interface Quantity {
  value: string;
  unit: string;
}

const formats = new Map<number, Intl.NumberFormat>();

/** A number with this many digits behind the point, grouped by threes. */
export function fixed(value: number, digits: number): string {
  let format = formats.get(digits);
  if (format === undefined) {
    // One locale for all: tables are compared, and pasted into tickets.
    format = new Intl.NumberFormat('en', {
      minimumFractionDigits: digits,
      maximumFractionDigits: digits,
      useGrouping: 'min2',
    });
    formats.set(digits, format);
  }
  const text = format.format(value);
  // A true minus is as wide as a digit; zero has no sign.
  return /^-[0.]*$/.test(text) ? text.slice(1) : text.replace('-', '−');
}

/** A number with about three significant digits. */
export function significant(value: number): string {
  const size = Math.abs(value);
  return fixed(value, size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2);
}

/** Milli-CPU as CPUs. */
export function cpus(mcpu: number): Quantity {
  const value = mcpu / 1000;
  const size = Math.abs(value);
  return {
    value: fixed(value, size >= 100 ? 1 : size >= 0.1 || size === 0 ? 2 : 3),
    unit: 'CPU',
  };
}

/** Millionths as percent; small ones keep more digits. */
export function percent(ppm: number): Quantity {
  const value = ppm / 10_000;
  const size = Math.abs(value);
  return {
    value: fixed(value, size >= 100 ? 0 : size >= 10 ? 1 : 2),
    unit: '%',
  };
}

/** The same with its sign, for errors. */
export function signedPercent(ppm: number): Quantity {
  const { value, unit } = percent(ppm);
  return { value: ppm > 0 && !/^[0.]*$/.test(value) ? `+${value}` : value, unit };
}

const STEPS: readonly [number, string][] = [
  [1e3, 'ns'],
  [1e6, 'µs'],
  [1e9, 'ms'],
  [Infinity, 's'],
];

/** Nanoseconds in the unit that fits their size. */
export function nanoseconds(ns: number): Quantity {
  let scale = 1;
  for (const [limit, unit] of STEPS) {
    if (Math.abs(ns) < limit) {
      return { value: trimmed(ns / scale), unit };
    }
    scale = limit;
  }
  return { value: trimmed(ns / 1e9), unit: 's' };
}

/** Microseconds in the unit that fits their size. */
export function microseconds(us: number): Quantity {
  return us === 0 ? { value: '0', unit: 'µs' } : nanoseconds(us * 1000);
}

function trimmed(value: number): string {
  const text = significant(value);
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** Seconds as a duration: 42 s, 3 min 20 s, 5 h 2 min, 3 d 4 h. */
export function duration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (seconds < 10 && seconds !== Math.round(seconds)) {
    return `${fixed(Math.max(0, seconds), 1)} s`;
  }
  const parts: [number, string][] = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3_600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'min'],
    [whole % 60, 's'],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) {
    return '0 s';
  }
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ');
}

/** How long ago a moment was, by the clock of the server. */
export function ago(at: string | null, nowMs: number): string {
  if (at === null) {
    return UNKNOWN;
  }
  const seconds = (nowMs - Date.parse(at)) / 1000;
  if (Number.isNaN(seconds)) {
    return UNKNOWN;
  }
  if (seconds < -1) {
    return `in ${duration(Math.round(-seconds))}`;
  }
  return seconds < 1.5 ? 'now' : `${duration(Math.round(seconds))} ago`;
}

/** A moment in the time zone of the browser, to the second. */
export function moment(at: string | null): string {
  if (at === null) {
    return UNKNOWN;
  }
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) {
    return UNKNOWN;
  }
  const two = (value: number) => String(value).padStart(2, '0');
  return (
    `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}` +
    ` ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  );
}

/** A number and its unit in one text. */
export function text(quantity: Quantity | null): string {
  return quantity === null
    ? UNKNOWN
    : `${quantity.value} ${quantity.unit}`.trimEnd();
}

/** The noun with its count: 1 host, 2 hosts. */
export function count(value: number, noun: string, plural = `${noun}s`): string {
  return `${fixed(value, 0)} ${value === 1 ? noun : plural}`;
}

/** The first part of a UUID, where there is no room for all of it. */
export function short(uuid: string): string {
  return uuid.slice(0, 8);
}
