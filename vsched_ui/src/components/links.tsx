// SPDX-License-Identifier: Apache-2.0

import { Link } from 'react-router';

import { segment } from '../api/hooks';
import { short } from '../model/units';

export function HostLink({ name }: { name: string }) {
  return <Link to={`/hosts/${segment(name)}`}>{name}</Link>;
}

/** An instance by its name, or by the beginning of its UUID. */
export function InstanceLink({
  uuid,
  name,
}: {
  uuid: string;
  name?: string | null;
}) {
  return (
    <Link to={`/instances/${segment(uuid)}`} title={uuid}>
      {name ? name : <span className="vs-mono">{short(uuid)}</span>}
    </Link>
  );
}
