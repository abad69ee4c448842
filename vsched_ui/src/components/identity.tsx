// SPDX-License-Identifier: Apache-2.0

import { type Identity, nameOf, searchedOf } from '../model/identity';
import type { Column } from './DataTable';
import { InstanceLink } from './links';

/**
 * The column that says which instance a row is about.
 *
 * @param of - returns null for a row that is about none.
 */
export function instanceColumn<T>(of: (row: T) => Identity | null): Column<T> {
  return {
    key: 'instance',
    title: 'Instance',
    value: (row) => {
      const found = of(row);
      return found === null ? null : nameOf(found);
    },
    render: (row) => {
      const found = of(row);
      return found === null ? (
        '–'
      ) : (
        <InstanceLink uuid={found.instance_uuid} name={nameOf(found)} />
      );
    },
    text: (row) => {
      const found = of(row);
      return found === null ? '' : searchedOf(found);
    },
  };
}

/** The same, and whose it is. */
export function identityColumns<T>(
  of: (row: T) => Identity,
): readonly Column<T>[] {
  return [
    instanceColumn(of),
    {
      key: 'project',
      title: 'Project',
      value: (row) => of(row).project_id,
    },
    {
      key: 'flavor',
      title: 'Flavor',
      value: (row) => of(row).flavor_name,
    },
  ];
}
