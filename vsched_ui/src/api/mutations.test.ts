// SPDX-License-Identifier: Apache-2.0

import {
  MutationObserver,
  QueryClient,
  QueryObserver,
} from '@tanstack/react-query';
import { afterEach, beforeEach, expect, it } from 'vitest';

import { ApiError, Unreachable } from './client';
import { type Change, changeOptions } from './mutations';
import { patchReservation } from './singles';
import type { Reservation } from './types';

const CONFLICT = new ApiError(409, [], null, null);

let cache: QueryClient;

beforeEach(() => {
  cache = new QueryClient({
    defaultOptions: {
      queries: { retry: false, networkMode: 'always' },
      mutations: { retry: false, networkMode: 'always' },
    },
  });
});

afterEach(() => cache.clear());

/** What is asked for below a key, and how each request is answered. */
function polled(queryKey: string[]) {
  const answers: ((answer: unknown) => void)[] = [];
  const observer = new QueryObserver(cache, {
    queryKey,
    queryFn: ({ signal }) =>
      new Promise((resolve, reject) => {
        answers.push(resolve);
        signal.addEventListener('abort', () => reject(new Error('aborted')));
      }),
  });
  const seen: unknown[] = [];
  observer.subscribe(({ data }) => {
    if (data !== seen.at(-1)) {
      seen.push(data);
    }
  });
  return { observer, answers, seen };
}

const changing = <D>(change: Change<void, D>) =>
  new MutationObserver(cache, changeOptions(cache, change)).mutate();

/** As long as answers take that are there. */
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));

it('shows no answer from before a change', async () => {
  const { observer, answers, seen } = polled(['thing', 'a']);
  answers[0]?.('old');
  await soon();
  void observer.refetch();
  await changing({
    send: () => Promise.resolve('new'),
    keys: [['thing', 'a']],
    show: (_, answer) => cache.setQueryData(['thing', 'a'], answer),
  });
  answers[1]?.('old, too');
  await soon();
  expect(seen).toEqual(['old', 'new']);
  // The next poll is as any other.
  void observer.refetch();
  answers[2]?.('newer');
  await soon();
  expect(seen).toEqual(['old', 'new', 'newer']);
});

it('asks again for what was never answered', async () => {
  const { answers, seen } = polled(['things']);
  const changed = changing({
    send: () => Promise.resolve(null),
    keys: [['things']],
  });
  await soon();
  answers[0]?.('old');
  answers[1]?.('new');
  await changed;
  expect(seen).toEqual(['new']);
});

it('is done once what it changed is shown', async () => {
  const { answers } = polled(['things']);
  answers[0]?.('old');
  await soon();
  let shown: unknown = null;
  const changed = changing({
    send: () => Promise.resolve(null),
    keys: [['things']],
    done: () => {
      shown = cache.getQueryData(['things']);
    },
  });
  await soon();
  expect(shown).toBeNull();
  answers[1]?.('new');
  await changed;
  expect(shown).toBe('new');
});

it('reads again what could not be changed', async () => {
  const { answers } = polled(['things']);
  answers[0]?.('old');
  await soon();
  let problem: unknown = null;
  const changed = changing({
    send: () => Promise.reject(CONFLICT),
    keys: [['things']],
    show: () => expect.unreachable(),
    done: () => expect.unreachable(),
  }).catch((one: unknown) => {
    problem = one;
  });
  await soon();
  expect(problem).toBeNull();
  answers[1]?.('as another user left it');
  await changed;
  expect(problem).toBe(CONFLICT);
  expect(cache.getQueryData(['things'])).toBe('as another user left it');
});

it('does not wait for an API that does not answer', async () => {
  const { answers } = polled(['things']);
  answers[0]?.('old');
  await soon();
  const problem = new Unreachable(null);
  await expect(
    changing({ send: () => Promise.reject(problem), keys: [['things']] }),
  ).rejects.toBe(problem);
  await soon();
  expect(answers.length).toBe(2);
});

it('shows a changed reservation, whatever was asked for before', async () => {
  const row = (runtime_us: number) =>
    ({ instance_uuid: 'a', runtime_us }) as Reservation;
  const { observer, answers, seen } = polled(['reservation', 'a']);
  answers[0]?.(row(1));
  await soon();
  void observer.refetch();
  await patchReservation(cache, 'a', row(2), 1000);
  answers[1]?.(row(1));
  await soon();
  // One that was read because of an event, but asked for before the change.
  await patchReservation(cache, 'a', row(1), 999);
  expect(seen).toEqual([row(1), row(2)]);
  await patchReservation(cache, 'a', null, 1001);
  await patchReservation(cache, 'a', row(2), 1000);
  expect(seen).toEqual([row(1), row(2), null]);
});
