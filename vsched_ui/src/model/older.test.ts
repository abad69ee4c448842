// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import { ApiError, Unreachable } from '../api/client';
import { type Outcome, readOlder, reasonOf } from './older';

const problem = new Error('it failed');

/** Returns outcomes one after the other, the last one again and again. */
function answers(...outcomes: Outcome[]) {
  const asked = { count: 0 };
  const more = async () => {
    const found = outcomes[Math.min(asked.count, outcomes.length - 1)]!;
    asked.count += 1;
    return found;
  };
  return { asked, more };
}

it('reads older rows with one request', async () => {
  const { asked, more } = answers({ error: null, rows: 200 });
  expect(await readOlder(100, more)).toBeNull();
  expect(asked.count).toBe(1);
});

it('returns why they could not be read', async () => {
  const { asked, more } = answers({ error: problem, rows: 100 });
  expect(await readOlder(100, more)).toBe(problem);
  expect(asked.count).toBe(1);
});

it('has read them though the list failed after that', async () => {
  const { more } = answers({ error: problem, rows: 200 });
  expect(await readOlder(100, more)).toBeNull();
});

it('requests again what was dropped', async () => {
  const { asked, more } = answers(
    { error: null, rows: 100 },
    { error: null, rows: 100 },
    { error: null, rows: 200 },
  );
  expect(await readOlder(100, more)).toBeNull();
  expect(asked.count).toBe(3);
});

it('comes to an end', async () => {
  const { asked, more } = answers({ error: null, rows: 100 });
  expect((await readOlder(100, more))?.message).toContain('newer rows');
  expect(asked.count).toBeLessThan(10);
});

it('has the reason in plain words', () => {
  expect(reasonOf(problem)).toEqual({ text: 'it failed', code: '' });
  // The banner of the page says of the whole API that it does not answer.
  expect(reasonOf(new Unreachable(problem))).toEqual({
    text: 'there was no answer',
    code: '',
  });
  expect(
    reasonOf(
      new ApiError(
        403,
        [{ detail: 'policy x does not allow it', code: 'vsched.y' }],
        null,
        null,
      ),
    ),
  ).toEqual({ text: 'policy x does not allow it', code: 'vsched.y' });
});
