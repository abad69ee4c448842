// SPDX-License-Identifier: Apache-2.0

import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { clockOf } from './clocks';

beforeEach(() => vi.useFakeTimers({ now: 1_000 }));
afterEach(() => vi.useRealTimers());

const source = () => ({ serverNow: () => Date.now() });

it('is one clock for all, and ticks for them at once', () => {
  const server = source();
  const clock = clockOf(server, 1_000);
  expect(clockOf(server, 1_000)).toBe(clock);
  expect(clockOf(server, 5_000)).not.toBe(clock);
  const seen: number[] = [];
  const stops = [1, 2].map(() =>
    clock.subscribe(() => seen.push(clock.now())),
  );
  vi.advanceTimersByTime(900);
  // Two parts that are drawn at different moments show the same.
  expect(clock.now()).toBe(1_000);
  vi.advanceTimersByTime(100);
  expect(seen).toEqual([2_000, 2_000]);
  stops.forEach((stop) => stop());
  expect(vi.getTimerCount()).toBe(0);
});

it('has the time at which it is read first, and again after a pause', () => {
  const clock = clockOf(source(), 1_000);
  clock.subscribe(() => undefined)();
  vi.advanceTimersByTime(60_000);
  expect(clock.now()).toBe(61_000);
});
