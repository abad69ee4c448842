// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import * as shares from './shares';

it('computes the share of a vCPU', () => {
  expect(shares.sharePpm(12_000, 20_000)).toBe(600_000);
  expect(shares.sharePpm(null, 20_000)).toBeNull();
  expect(shares.sharePpm(1, 0)).toBeNull();
});

it('rounds bandwidth up', () => {
  expect(shares.bandwidthMcpu(12_000, 20_000, 1)).toBe(600);
  expect(shares.bandwidthMcpu(1, 3, 1)).toBe(334);
  expect(shares.bandwidthMcpu(5_000, 20_000, 4)).toBe(1000);
});

it('finds the runtime of a share', () => {
  expect(shares.runtimeUs(60, 20_000)).toBe(12_000);
  expect(shares.runtimeUs(33.3, 10_000)).toBe(3330);
  expect(shares.runtimeUs(0.001, 10_000)).toBe(1);
});

it('has errors above 0 for more than reserved', () => {
  expect(shares.errorPpm(612_000, 600_000)).toBe(20_000);
  expect(shares.errorPpm(300_000, 600_000)).toBe(-500_000);
  expect(shares.errorPpm(1, null)).toBeNull();
  expect(shares.errorPpm(1, 0)).toBeNull();
});

it('withholds nothing from an idle instance', () => {
  expect(shares.withheldPpm(0, 0, 600_000)).toBe(0);
  expect(shares.withheldPpm(300_000, 100_000, 600_000)).toBe(166_667);
  // One that waited longer than it lacks would have used more than its share.
  expect(shares.withheldPpm(588_000, 400_000, 600_000)).toBe(20_000);
  expect(shares.withheldPpm(700_000, 400_000, 600_000)).toBe(0);
  expect(shares.withheldPpm(0, 1, null)).toBeNull();
});

it('has no part of a capacity of nothing', () => {
  expect(shares.usedPpm(600, 1800)).toBe(333_333);
  expect(shares.usedPpm(600, 0)).toBeNull();
  expect(shares.usedPpm(null, 1800)).toBeNull();
});

it('turns CPU time into a rate', () => {
  expect(shares.rateMcpu(612_000, 1_000_000)).toBe(612);
  expect(shares.rateMcpu(612_000, 0)).toBe(0);
});
