// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import {
  type Identity,
  identityOf,
  nameOf,
  searchedOf,
  serverQuery,
  titleOf,
} from './identity';

const UUID = '9e4c1a70-53d2-4d0b-8a46-7f0c2b1d6e35';

const one: Identity = {
  instance_uuid: UUID,
  instance_name: 'instance-0000001f',
  server_name: 'web-1',
  project_id: 'a1b2',
  flavor_name: 'c2.half',
};

it('prefers the name that the owner chose', () => {
  expect(nameOf(one)).toBe('web-1');
  expect(nameOf({ ...one, server_name: null })).toBe('instance-0000001f');
});

it('has the beginning of the UUID for users who see no other name', () => {
  const nameless = { ...one, server_name: null, instance_name: null };
  expect(nameOf(nameless)).toBeNull();
  expect(UUID.startsWith(titleOf(nameless).replace('…', ''))).toBe(true);
});

it('is found by what columns may not show', () => {
  expect(searchedOf(one)).toBe(`${UUID} instance-0000001f a1b2 c2.half`);
  expect(
    searchedOf({
      instance_uuid: UUID,
      server_name: 'web-1',
      project_id: null,
      flavor_name: null,
    }),
  ).toBe(UUID);
});

it('is read by its UUID or by its name', () => {
  expect(serverQuery('')).toEqual({});
  expect(serverQuery('  ')).toEqual({});
  expect(serverQuery(' web 1 ')).toEqual({ server_name: 'web 1' });
  expect(serverQuery(UUID.toUpperCase())).toEqual({ instance_uuid: UUID });
  // A part of one is a name.
  expect(serverQuery(UUID.slice(0, 8))).toEqual({
    server_name: UUID.slice(0, 8),
  });
});

it('takes the name of an instance for the hypervisor’s', () => {
  const found = identityOf({ ...one, name: 'instance-00000020', vcpus: 2 });
  expect(found.instance_name).toBe('instance-00000020');
  expect(found.vcpus).toBe(2);
});
