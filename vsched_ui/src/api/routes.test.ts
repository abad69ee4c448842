// SPDX-License-Identifier: Apache-2.0

import { expect, expectTypeOf, it } from 'vitest';

import { Client } from './client';
import { type Answer, type Row, filled, nameOf } from './routes';
import type { DetailedHost, Job, Reservation } from './types';

it('fills paths', () => {
  expect(filled('/v1/hosts')).toBe('v1/hosts');
  expect(filled('/v1/hosts/{name}/audit', { name: 'a/b' })).toBe(
    'v1/hosts/a%2Fb/audit',
  );
  expect(() => filled('/v1/hosts/{name}')).toThrow('/v1/hosts/{name} needs name');
});

it('knows the names of lists', () => {
  expect(nameOf('/v1/hosts')).toBe('hosts');
  expect(nameOf('/v1/balloons/history')).toBe('history');
});

it('sends what a route takes', async () => {
  const sent: [string, RequestInit][] = [];
  const client = new Client('http://api/', () => null, (url, init) => {
    sent.push([String(url), init ?? {}]);
    return Promise.resolve(new Response('{}', { status: 202 }));
  });
  await client.call('GET', '/v1/jobs', { query: { kind: 'profile-error' } });
  await client.call('PATCH', '/v1/jobs/{job_uuid}', {
    path: { job_uuid: 'x' },
    body: { wanted: 'cancel' },
  });
  await client.call('DELETE', '/v1/reservations/{instance_uuid}', {
    path: { instance_uuid: 'x' },
    query: { generation: 7 },
  });
  expect(sent.map(([url, { method }]) => `${method} ${url}`)).toEqual([
    'GET http://api/v1/jobs?kind=profile-error',
    'PATCH http://api/v1/jobs/x',
    'DELETE http://api/v1/reservations/x?generation=7',
  ]);
  expect(sent[1]?.[1].body).toBe('{"wanted":"cancel"}');
});

// Checked by the compiler.
it('has the types of the document', () => {
  expectTypeOf<Answer<'GET', '/v1/hosts/{name}'>>().toEqualTypeOf<{
    host: DetailedHost;
  }>();
  expectTypeOf<Row<'/v1/jobs'>>().toEqualTypeOf<Job>();
  expectTypeOf<
    Answer<'DELETE', '/v1/reservations/{instance_uuid}'>
  >().toEqualTypeOf<{ reservation: Reservation } | null>();
  const refused = (client: Client) => {
    // @ts-expect-error -- there is no such path
    void client.call('GET', '/v1/nowhere');
    // @ts-expect-error -- it is not created
    void client.call('POST', '/v1/hosts', {});
    // @ts-expect-error -- it needs the name
    void client.call('GET', '/v1/hosts/{name}');
    // @ts-expect-error -- it has no such filter
    void client.call('GET', '/v1/hosts', { query: { colour: 'red' } });
    // @ts-expect-error -- there is no such state
    void client.call('GET', '/v1/hosts', { query: { state: 'sideways' } });
    void client.call('PATCH', '/v1/balloons/{instance_uuid}', {
      path: { instance_uuid: 'x' },
      // @ts-expect-error -- it has no such field
      body: { vcpus: 1 },
    });
    void client.call('PATCH', '/v1/reservations/{instance_uuid}', {
      path: { instance_uuid: 'x' },
      // @ts-expect-error -- likewise
      body: { runtime_ms: 1 },
    });
    const { signal } = new AbortController();
    const first = { limit: 1, marker: null, signal };
    // @ts-expect-error -- it is no list
    void client.page('/v1/snapshot', { query: {}, ...first });
    // @ts-expect-error -- there is no such kind
    void client.page('/v1/jobs', { query: { kind: 'other' }, ...first });
    // @ts-expect-error -- its types would be written by hand
    void client.request('GET', 'v1/hosts');
    // @ts-expect-error -- likewise
    void client.get('v1/hosts');
  };
  expect(refused).toBeTypeOf('function');
});
