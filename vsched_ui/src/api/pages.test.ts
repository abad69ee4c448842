// SPDX-License-Identifier: Apache-2.0

import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, it, vi } from 'vitest';

import {
  MAX_PAGES,
  type Pages,
  countRows,
  readAgain,
  readPages,
} from './pages';
import type { ListAnswer } from './routes';

/** A page of a list of numbers; its marker is its last number. */
function page(first: number, count: number, more = true): ListAnswer {
  const rows = Array.from({ length: count }, (_, index) => first + index);
  return {
    rows,
    links: more
      ? [{ rel: 'next', href: `/v1/rows?marker=${first + count - 1}` }]
      : [],
  };
}

const parts = (show: { mock: { calls: unknown[][] } }) =>
  show.mock.calls.map(([found]) => countRows('rows', found as Pages));

it('requests the next page before it shows what is there', async () => {
  const events: string[] = [];
  const found = await readPages(
    'rows',
    async (marker) => {
      events.push(`ask ${marker}`);
      return marker === null ? page(0, 2) : page(2, 1, false);
    },
    () => events.push('show'),
  );
  expect(events).toEqual(['ask null', 'ask 1', 'show']);
  expect(found.pages.flatMap((one) => one.rows)).toEqual([0, 1, 2]);
  expect(found.next).toBe(null);
});

it('shows the first page, and then few large parts', async () => {
  const show = vi.fn();
  const total = 1000;
  const found = await readPages(
    'rows',
    async (marker) => {
      const first = marker === null ? 0 : Number(marker) + 1;
      const count = first === 0 ? 10 : 100;
      return page(first, count, first + count < total);
    },
    show,
  );
  expect(parts(show)).toEqual([10, 110, 510]);
  expect(countRows('rows', found)).toBe(1010);
});

it('shows what was read when a page cannot be', async () => {
  const show = vi.fn();
  const asked = [page(0, 10), page(10, 20)];
  await expect(
    readPages(
      'rows',
      async () => {
        const answer = asked.shift();
        if (answer === undefined) {
          throw new Error('refused');
        }
        return answer;
      },
      show,
    ),
  ).rejects.toThrow('refused');
  expect(parts(show)).toEqual([10, 30]);
});

it('ends a list that is too long, and says where', async () => {
  const ask = vi.fn(async (marker: string | null) =>
    page(marker === null ? 0 : Number(marker) + 1, 1),
  );
  const found = await readPages('rows', ask, () => undefined);
  expect(ask).toHaveBeenCalledTimes(MAX_PAGES);
  expect(found.next).toBe(String(MAX_PAGES - 1));
});

it('reads a list again after it was read, and not in the middle', async () => {
  const cache = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const answers: ((value: number) => void)[] = [];
  const aborted: boolean[] = [];
  const watched = new QueryObserver<number>(cache, {
    queryKey: ['rows'],
    queryFn: ({ signal }) =>
      new Promise((resolve) => {
        const number = answers.length;
        aborted.push(false);
        signal.addEventListener('abort', () => (aborted[number] = true));
        answers.push(resolve);
      }),
  });
  const stop = watched.subscribe(() => undefined);
  cache.setQueryData(['rows'], 0);
  const changes = [1, 2].map(() => readAgain(cache, { queryKey: ['rows'] }));
  expect(answers.length).toBe(1);
  answers[0]?.(1);
  await vi.waitFor(() => expect(answers.length).toBe(2));
  answers[1]?.(2);
  await Promise.all(changes);
  expect(aborted).toEqual([false, false]);
  expect(answers.length).toBe(2);
  expect(cache.getQueryData(['rows'])).toBe(2);
  stop();
});
