// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import { POLICIES, allows, ownOnly, policyOf, rightsOf } from './rights';

const LIST = POLICIES['/v1/reservations'];

it('knows the policy of a path', () => {
  for (const [path, rule] of [
    ['v1/hosts', 'vsched:hosts:list'],
    ['v1/hosts/node-1', 'vsched:hosts:show'],
    ['v1/hosts/a%2Fb/profiles/error', 'vsched:profiles:show'],
    ['v1/balloons/history', 'vsched:balloons:history'],
    ['v1/instances/9e4c1a70', 'vsched:instances:show'],
    ['v1/jobs/1', null],
    ['v1', null],
    ['ui/session', null],
  ] as const) {
    expect(policyOf(path), path).toBe(rule);
  }
});

it('keeps apart what is of all projects and what is of the own', () => {
  const rights = rightsOf({
    allowed: ['vsched:hosts:list'],
    allowed_in_project: [LIST],
  });
  expect(allows(rights, 'vsched:hosts:list', true)).toBe(true);
  expect(allows(rights, LIST, false)).toBe(true);
  expect(allows(rights, LIST, true)).toBe(false);
  expect(allows(rights, 'vsched:events:list', false)).toBe(false);
  expect(ownOnly(rights, LIST)).toBe(true);
  expect(ownOnly(rights, 'vsched:hosts:list')).toBe(false);
  expect(ownOnly(rights, 'vsched:events:list')).toBe(false);
});
