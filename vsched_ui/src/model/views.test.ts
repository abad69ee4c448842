// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import { POLICIES, rightsOf } from './rights';
import { VIEWS, type View, menuOf, missing, viewAt } from './views';

const OWN = [
  'vsched:balloons:list',
  'vsched:instances:list',
  'vsched:instances:show',
  'vsched:reservations:list',
  'vsched:usage:list',
];
const EVERYTHING = rightsOf({
  allowed: [...Object.values(POLICIES), 'vsched:evaluations:create'],
  allowed_in_project: [],
});
const PROJECT = rightsOf({ allowed: [], allowed_in_project: OWN });
const NOTHING = rightsOf({
  allowed: ['vsched:page:show'],
  allowed_in_project: [],
});

const titles = (rights: typeof EVERYTHING) =>
  menuOf(rights).map((one) => one.title);

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
    expect(viewAt(path), path).toBe(view);
  }
});

it('has none for other addresses', () => {
  for (const path of ['/nowhere', '/instances', '/jobs/1', '/hosts/a/b', '/host']) {
    expect(viewAt(path), path).toBeNull();
  }
});

it('has all views in the menu of who may read everything', () => {
  expect(titles(EVERYTHING)).toEqual([
    'Overview',
    'Hosts',
    'Reservations',
    'What if',
    'Balloons',
    'Events',
    'Jobs',
    'Evidence',
  ]);
  for (const view of Object.keys(VIEWS) as View[]) {
    expect(missing(view, EVERYTHING), view).toEqual([]);
  }
});

it('has only views of instances for readers of one project', () => {
  expect(titles(PROJECT)).toEqual(['Reservations', 'Balloons']);
  expect(missing('instance', PROJECT)).toEqual([]);
  expect(missing('host', PROJECT)).toEqual(['vsched:hosts:show']);
});

it('concludes nothing about the fleet from one project', () => {
  const rights = rightsOf({
    allowed: ['vsched:hosts:list', 'vsched:jobs:list'],
    allowed_in_project: OWN,
  });
  expect(missing('overview', rights)).toEqual(['vsched:reservations:list']);
  expect(missing('reservations', rights)).toEqual([]);
});

it('has no view for who may read nothing', () => {
  expect(titles(NOTHING)).toEqual([]);
});

it('has each view below one of the menu', () => {
  for (const { within } of Object.values(VIEWS)) {
    expect(VIEWS[within].title).not.toBeNull();
  }
});
