// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import { firstView } from './views';

it('knows the view of each address', () => {
  for (const [path, view] of [
    ['', 'overview'],
    ['/', 'overview'],
    ['/hosts', 'hosts'],
    ['/hosts/node-1', 'host'],
    ['/instances/9e4c1a70', 'instance'],
    ['/reservations', 'reservations'],
    ['/jobs/', 'jobs'],
    ['/evidence', 'evidence'],
  ] as const) {
    expect(firstView(path), path).toBe(view);
  }
});

it('has none for other addresses', () => {
  for (const path of ['/nowhere', '/instances', '/jobs/1', '/hosts/a/b', '/host']) {
    expect(firstView(path), path).toBeNull();
  }
});
