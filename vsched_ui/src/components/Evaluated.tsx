// SPDX-License-Identifier: Apache-2.0

import { Alert } from '@patternfly/react-core';

import type { EvaluatedHost, Reservation } from '../api/types';
import { changeOf } from '../model/evaluations';
import { cpus, text } from '../model/units';
import { Cpus, ErrorFigure, Percent } from './figures';
import { Facts } from './Section';

/** Why a host does not take something, in the words of the service. */
export function Reasons({ host }: { host: EvaluatedHost }) {
  if (host.problems.length === 0) {
    return <>–</>;
  }
  return (
    <ul className="vs-reasons">
      {host.problems.map((problem) => (
        <li key={problem.cause + problem.detail}>
          <strong>{problem.cause}</strong>
          {problem.unknown && ' (not measured)'}: {problem.detail}
        </li>
      ))}
    </ul>
  );
}

/** The verdict about a change of one instance on its host. */
export function Verdict({
  host,
  now,
}: {
  host: EvaluatedHost;
  now: Reservation | null;
}) {
  const { held, more, fits } = changeOf(host, now);
  return (
    <div className="vs-verdict">
      <Alert
        isInline
        variant={fits ? 'success' : 'warning'}
        title={
          fits
            ? `It fits on ${host.host}`
            : `It does not fit on ${host.host}: the host would refuse it, and the instance would keep what it has`
        }
      >
        {!host.fits && fits
          ? more > 0
            ? `It needs ${text(cpus(more))} more than it holds now.`
            : 'It needs no more than it holds now.'
          : null}
        {!fits && <Reasons host={host} />}
      </Alert>
      <Facts
        of={[
          ['Needs', <Cpus mcpu={host.demand_mcpu} />],
          ['of these, vCPUs', <Cpus mcpu={host.guest_mcpu} />],
          ['of these, I/O', <Cpus mcpu={host.overhead_mcpu} />],
          ['Holds now', <Cpus mcpu={held} />],
          ['Free there', <Cpus mcpu={host.free_mcpu} />],
          ['Capacity', <Cpus mcpu={host.capacity_mcpu} />],
          ['Margin', <Percent ppm={host.margin_ppm} />],
          [
            'Measured error, p99',
            <ErrorFigure ppm={host.measured_p99_lower_ppm} />,
          ],
        ]}
      />
    </div>
  );
}
