// SPDX-License-Identifier: Apache-2.0

import { type Identity, nameOf, searchedOf } from '../model/identity';
import type { Column } from './DataTable';
import { InstanceLink } from './links';

/** The columns that say which instance a row is about. */
export function identityColumns<T>(
  of: (row: T) => Identity,
): readonly Column<T>[] {
  return [
    {
      key: 'instance',
      title: 'Instance',
      value: (row) => nameOf(of(row)),
      render: (row) => (
        <InstanceLink uuid={of(row).instance_uuid} name={nameOf(of(row))} />
      ),
      text: (row) => searchedOf(of(row)),
    },
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
