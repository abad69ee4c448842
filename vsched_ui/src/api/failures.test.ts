// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import { ApiError, NotPermitted, Unreachable } from './client';
import { oldest, outdated, pollInterval } from './failures';

const refused = new ApiError(403, [], null, null);
const broken = new ApiError(500, [], null, null);

it('never requests what may not be read', () => {
  expect(pollInterval(1_500, new NotPermitted('vsched:some'), 0)).toBe(false);
});

it('seldom requests what was refused', () => {
  expect(pollInterval(1_500, refused, 0)).toBe(60_000);
  expect(pollInterval(90_000, refused, 0)).toBe(90_000);
});

it('goes on after other failures', () => {
  expect(pollInterval(1_500, null, 0)).toBe(1_500);
  expect(pollInterval(1_500, broken, 0)).toBe(1_500);
  expect(pollInterval(2_000, new Unreachable(null), 4)).toBe(8_000);
});

it('says since when data is old', () => {
  const readAt = Date.parse('2027-01-15T08:00:00Z');
  expect(outdated({ data: [], error: broken, readAt }, 1_000)).toEqual({
    error: broken,
    at: '2027-01-15T08:00:01.000Z',
  });
  expect(outdated({ data: null, error: broken }, 0)).toEqual({
    error: broken,
    at: null,
  });
});

it('says nothing of data that is up to date, or was never read', () => {
  expect(outdated({ data: [], error: null, readAt: 1 }, 0)).toBeNull();
  expect(outdated({ data: undefined, error: broken }, 0)).toBeNull();
});

it('takes the oldest of what could not be read again', () => {
  const read = (error: Error | null, readAt: number | null) => ({
    data: [],
    error,
    readAt,
  });
  expect(oldest(read(broken, 5), read(refused, 3), read(null, 1))).toBe(3);
  expect(oldest(read(broken, 5), read(refused, null))).toBeNull();
  expect(oldest(read(null, 1))).toBeNull();
});
