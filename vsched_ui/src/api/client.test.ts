// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import { rightsOf } from '../model/rights';
import {
  ApiError,
  Client,
  NotPermitted,
  Unreachable,
  nextMarker,
  pollDelay,
} from './client';

const NOW = Date.parse('2027-01-15T08:00:00Z');

/** A client, the requests that it sent, and what they are answered. */
function made(...answers: (Response | Error)[]) {
  const sent: { url: string; init: RequestInit }[] = [];
  const client = new Client(
    'http://api/',
    () => 'token',
    (url, init) => {
      sent.push({ url: String(url), init: init ?? {} });
      const answer = answers.shift();
      return answer instanceof Response
        ? Promise.resolve(answer)
        : Promise.reject(answer ?? new Error('nothing more'));
    },
    () => NOW,
  );
  const header = (index: number, name: string) =>
    new Headers(sent[index]?.init.headers).get(name);
  return { client, sent, header };
}

const json = (body: unknown, init: ResponseInit = {}) =>
  new Response(JSON.stringify(body), init);

it('repeats filters and leaves out what is not given', async () => {
  const { client, sent, header } = made(json({}));
  await client.call('GET', '/v1/jobs', {
    query: { state: ['queued', 'running'], host: 'a b', marker: undefined },
  });
  expect(sent[0]?.url).toBe(
    'http://api/v1/jobs?state=queued&state=running&host=a+b',
  );
  expect(header(0, 'X-Auth-Token')).toBe('token');
});

it('reads one page of a list', async () => {
  const { client, sent } = made(json({}), json({}));
  const { signal } = new AbortController();
  const query = { kind: 'profile-error' } as const;
  await client.page('/v1/jobs', { query, limit: 2, marker: null, signal });
  await client.page('/v1/jobs', { query, limit: 5, marker: 'n/1', signal });
  expect(sent.map(({ url }) => url)).toEqual([
    'http://api/v1/jobs?kind=profile-error&limit=2',
    'http://api/v1/jobs?kind=profile-error&limit=5&marker=n%2F1',
  ]);
});

it('returns the same object while nothing has changed', async () => {
  const { client, header } = made(
    json({ version: 1 }, { headers: { ETag: '"1"' } }),
    new Response(null, { status: 304 }),
    json({ version: 2 }, { headers: { ETag: '"2"' } }),
  );
  const ask = () => client.call('GET', '/v1/snapshot', { revalidate: true });
  const first = await ask();
  expect(await ask()).toBe(first);
  expect(header(0, 'If-None-Match')).toBeNull();
  expect(header(1, 'If-None-Match')).toBe('"1"');
  expect(await ask()).toEqual({ version: 2 });
});

it('does not ask by a tag that stands for a part of the answer', async () => {
  const { client, header } = made(
    json({}, { headers: { ETag: '"0"' } }),
    json({}),
  );
  await client.call('GET', '/v1/reservations/{instance_uuid}', {
    path: { instance_uuid: 'x' },
  });
  await client.call('GET', '/v1/reservations/{instance_uuid}', {
    path: { instance_uuid: 'x' },
  });
  expect(header(1, 'If-None-Match')).toBeNull();
});

it('names what the API says is wrong', async () => {
  const errors = [
    { detail: 'limit: 0', code: 'vsched.request.invalid', request_id: 'req-1' },
  ];
  const { client } = made(json({ errors }, { status: 400 }));
  const problem = await client.call('GET', '/v1/hosts').catch((one: unknown) => one);
  expect(problem).toBeInstanceOf(ApiError);
  expect(problem).toMatchObject({
    status: 400,
    code: 'vsched.request.invalid',
    message: 'limit: 0',
    requestId: 'req-1',
  });
  // The service works: it has judged the request.
  expect(client.connection.failures).toBe(0);
});

it('takes an error page of a proxy for what it is', async () => {
  const { client } = made(
    new Response('<html>', { status: 502, statusText: 'Bad Gateway' }),
  );
  await expect(client.call('GET', '/v1/hosts')).rejects.toThrow('502 Bad Gateway');
  expect(client.connection.failures).toBe(1);
});

it('counts failures in a row, and forgets them', async () => {
  const { client } = made(
    new TypeError('refused'),
    json({ errors: [] }, { status: 503 }),
    json({}),
  );
  const seen: number[] = [];
  client.subscribe(() => seen.push(client.connection.failures));
  await expect(client.call('GET', '/v1/hosts')).rejects.toBeInstanceOf(Unreachable);
  await expect(client.call('GET', '/v1/hosts')).rejects.toBeInstanceOf(ApiError);
  await client.call('GET', '/v1/hosts');
  expect(seen).toEqual([1, 2, 0]);
});

it('does not count requests that the page gave up', async () => {
  const { client } = made(new DOMException('aborted', 'AbortError'));
  const signal = AbortSignal.abort();
  await expect(client.call('GET', '/v1/hosts', { signal })).rejects.toThrow('aborted');
  expect(client.connection.failures).toBe(0);
});

it('knows the clock of the server', async () => {
  const { client } = made(
    json({}, { headers: { Date: 'Fri, 15 Jan 2027 08:01:00 GMT' } }),
  );
  await client.call('GET', '/v1/hosts');
  expect(client.serverNow()).toBe(NOW + 60_500);
});

it('sends a change with its generation', async () => {
  const { client, sent, header } = made(json({}, { status: 202 }));
  await client.call('PATCH', '/v1/reservations/{instance_uuid}', {
    path: { instance_uuid: 'x' },
    body: { runtime_us: 1 },
    ifMatch: '"7"',
  });
  expect(sent[0]?.init).toMatchObject({
    method: 'PATCH',
    body: '{"runtime_us":1}',
  });
  expect(header(0, 'If-Match')).toBe('"7"');
});

it('sends nothing that the user may not read', async () => {
  const { client, sent } = made(json({}), json({}), json({}));
  client.rights = rightsOf({
    allowed: ['vsched:hosts:list'],
    allowed_in_project: ['vsched:usage:list'],
  });
  await client.call('GET', '/v1/hosts');
  await client.call('GET', '/v1/usage');
  await client.call('GET', '/ui/session');
  const problem = await client.call('GET', '/v1/events').catch((one: unknown) => one);
  expect(problem).toBeInstanceOf(NotPermitted);
  expect(problem).toMatchObject({
    rule: 'vsched:events:list',
    message: 'policy vsched:events:list does not allow it',
  });
  await expect(client.call('GET', '/v1/usage', { whole: true })).rejects.toThrow(
    'vsched:usage:list',
  );
  expect(sent.length).toBe(3);
  expect(client.connection.failures).toBe(0);
});

it('asks less often while nothing is answered', () => {
  expect(pollDelay(2000, 0)).toBe(2000);
  expect([1, 2, 3, 4, 5, 99].map((count) => pollDelay(2000, count))).toEqual([
    2000, 2000, 4000, 8000, 10_000, 10_000,
  ]);
  expect(pollDelay(60_000, 1)).toBe(10_000);
});

it('takes the marker of the next page from any link', () => {
  const next = (href: string) => nextMarker([{ rel: 'next', href }]);
  expect(next('http://proxy/v1/hosts?limit=2&marker=n%2F1')).toBe('n/1');
  expect(next('/v1/hosts?marker=7')).toBe('7');
  expect(nextMarker([{ rel: 'self', href: '/v1/hosts' }])).toBeNull();
});
