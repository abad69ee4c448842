// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from 'vitest';

import * as units from './units';

describe('numbers with their units', () => {
  it.each([
    [600, '0.60 CPU'],
    [1800, '1.80 CPU'],
    [123_456, '123.5 CPU'],
    [-600, '−0.60 CPU'],
    [0, '0.00 CPU'],
    [2, '0.002 CPU'],
    [-0.1, '0.000 CPU'],
  ])('%d mcpu', (mcpu, text) => {
    expect(units.text(units.cpus(mcpu))).toBe(text);
  });

  it.each([
    [0, '0.00 %'],
    [19_988, '2.00 %'],
    [-431_000, '−43.1 %'],
    [1_500_000, '150 %'],
  ])('%d ppm', (ppm, text) => {
    expect(units.text(units.percent(ppm))).toBe(text);
  });

  it('gives errors their sign', () => {
    expect(units.text(units.signedPercent(8_317))).toBe('+0.83 %');
    expect(units.text(units.signedPercent(-8_317))).toBe('−0.83 %');
    expect(units.text(units.signedPercent(1))).toBe('0.00 %');
  });

  it.each([
    [0, '0 µs'],
    [250, '250 µs'],
    [12_000, '12 ms'],
    [12_500, '12.5 ms'],
    [1_000_000, '1 s'],
    [90_000_000, '90 s'],
  ])('%d µs', (us, text) => {
    expect(units.text(units.microseconds(us))).toBe(text);
  });

  it('knows what is below a microsecond', () => {
    expect(units.text(units.nanoseconds(12))).toBe('12 ns');
    expect(units.text(units.nanoseconds(12_345))).toBe('12.3 µs');
  });

  it.each([
    [0, '0 s'],
    [0.4, '0.4 s'],
    [42, '42 s'],
    [60, '1 min'],
    [200, '3 min 20 s'],
    [18_120, '5 h 2 min'],
    [273_600, '3 d 4 h'],
    [-5, '0 s'],
  ])('%d s', (seconds, text) => {
    expect(units.duration(seconds)).toBe(text);
  });

  it('groups by threes from five digits on', () => {
    expect(units.fixed(1234, 0)).toBe('1234');
    expect(units.fixed(12_345, 0)).toBe('12,345');
  });

  it('counts with a noun', () => {
    expect(units.count(1, 'host')).toBe('1 host');
    expect(units.count(0, 'host')).toBe('0 hosts');
  });
});

describe('moments', () => {
  const now = Date.parse('2027-01-15T08:01:40Z');

  it.each([
    ['2027-01-15T08:01:40.500000Z', 'now'],
    ['2027-01-15T08:00:00.000000Z', '1 min 40 s ago'],
    ['2027-01-15T08:02:40.000000Z', 'in 1 min'],
    [null, units.UNKNOWN],
    ['never', units.UNKNOWN],
  ])('%s', (at, text) => {
    expect(units.ago(at, now)).toBe(text);
  });

  it('are unknown where they are no times', () => {
    expect(units.moment('x')).toBe(units.UNKNOWN);
    expect(units.moment('2027-01-15T08:02:40Z')).toMatch(
      /^2027-01-1\d \d\d:\d\d:40$/,
    );
  });
});
