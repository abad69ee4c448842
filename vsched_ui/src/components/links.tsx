// SPDX-License-Identifier: Apache-2.0

import { Link } from 'react-router';

import { segment } from '../api/hooks';
import { short } from '../model/units';
import { Unknown } from './figures';

/** A host by its name, which some users do not see. */
export function HostLink({ name }: { name: string | null }) {
  if (name === null) {
    return <Unknown why="not shown to this user" />;
  }
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
