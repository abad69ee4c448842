// SPDX-License-Identifier: Apache-2.0

import { QueryClient, QueryObserver, environmentManager } from '@tanstack/react-query';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import { Client } from '../api/client';
import { sessionOf } from './session';

// Polls are of browsers only.
environmentManager.setIsServer(() => false);
beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Ask for a session; returns what was found, and how often it was asked for. */
function asked(...answers: (() => Response | Error)[]) {
  let sent = 0;
  const client = new Client(
    'http://api/',
    () => null,
    () => {
      const answer = answers[Math.min(sent, answers.length - 1)]?.();
      sent += 1;
      return answer instanceof Response
        ? Promise.resolve(answer)
        : Promise.reject(answer ?? new Error('nothing more'));
    },
  );
  const cache = new QueryClient({
    defaultOptions: { queries: { retry: false, networkMode: 'always' } },
  });
  const observer = new QueryObserver(cache, sessionOf(client));
  const leave = observer.subscribe(() => undefined);
  return {
    client,
    leave,
    sent: () => sent,
    session: () => observer.getCurrentResult().data,
  };
}

const away = () => new TypeError('refused');
const starting = () => new Response('not yet', { status: 500 });
const answered = () => new Response('{"session": {"user_id": "u"}}');

it('is asked for again until the API is there', async () => {
  const { client, leave, sent, session } = asked(away, away, away, answered);
  await vi.advanceTimersByTimeAsync(0);
  expect(client.connection.failures).toBe(1);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(sent()).toBe(3);
  expect(session()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(4_000);
  expect(session()).toEqual({ user_id: 'u' });
  expect(client.connection.failures).toBe(0);
  // From then on it changes seldom.
  await vi.advanceTimersByTimeAsync(59_000);
  expect(sent()).toBe(4);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(sent()).toBe(5);
  leave();
});

it('is asked for again after any other error, less and less often', async () => {
  const { leave, sent, session } = asked(
    starting,
    starting,
    starting,
    starting,
    starting,
    answered,
  );
  await vi.advanceTimersByTimeAsync(15_000);
  expect(sent()).toBe(5);
  await vi.advanceTimersByTimeAsync(9_999);
  expect(session()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1);
  expect(session()).toEqual({ user_id: 'u' });
  leave();
});
