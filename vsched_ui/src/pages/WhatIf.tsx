// SPDX-License-Identifier: Apache-2.0

import { Alert, Button, Form, FormGroup, TextArea } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';

import type { EvaluatedHost, EvaluationCreate } from '../api/types';
import { useApi } from '../app/api';
import { type Column, DataTable, type Facet } from '../components/DataTable';
import { Reasons } from '../components/Evaluated';
import { Choice, Field, ShareFields } from '../components/fields';
import { Cpus, ErrorFigure, Figure, Percent } from '../components/figures';
import { HostLink } from '../components/links';
import { Head, Section, Tile, Tiles } from '../components/Section';
import { NoHost, Problems, State } from '../components/states';
import { type FlavorDraft, NEW_FLAVOR, flavorFaults, flavorRequest } from '../model/flavors';
import { count, fixed } from '../model/units';

const FACETS: readonly Facet<EvaluatedHost>[] = [
  {
    key: 'fits',
    title: 'Fits',
    value: (row) => (row.fits ? 'yes' : 'no'),
    options: ['yes', 'no'],
  },
  {
    key: 'cause',
    title: 'Cause',
    value: (row) => row.problems.map((problem) => problem.cause),
    options: ['capacity', 'error', 'overhead', 'backend', 'reservation', 'unreadable'],
  },
];

const COLUMNS: readonly Column<EvaluatedHost>[] = [
  {
    key: 'host',
    title: 'Host',
    value: (row) => row.host,
    render: (row) => (
      <>
        <HostLink name={row.host} />{' '}
        {row.state === 'down' && <State of="down" />}
      </>
    ),
  },
  {
    key: 'fits',
    title: 'Fits',
    value: (row) => (row.fits ? 1 : 0),
    render: (row) => <State of={row.fits ? 'fits' : 'refused'} />,
    text: (row) => (row.fits ? 'fits' : 'refused'),
  },
  {
    key: 'why',
    title: 'Why not',
    value: (row) => row.problems.map((problem) => problem.detail).join('; '),
    render: (row) => <Reasons host={row} />,
    text: (row) => row.problems.map((problem) => problem.cause).join(' '),
  },
  {
    key: 'room',
    title: 'Room',
    numeric: true,
    value: (row) => row.room,
    help: 'How many instances fit there.',
  },
  {
    key: 'score',
    title: 'Score',
    numeric: true,
    value: (row) => row.score,
    render: (row) => <Figure of={{ value: fixed(row.score, 2), unit: '' }} />,
    help: 'The sum of the weights, each from 0 for the worst host to 1 for the best.',
  },
  {
    key: 'demand',
    title: 'Needs',
    numeric: true,
    value: (row) => row.demand_mcpu,
    render: (row) => <Cpus mcpu={row.demand_mcpu} />,
    help: 'For one instance on this host: vCPUs, I/O and margin.',
  },
  {
    key: 'overhead',
    title: 'of these, I/O',
    numeric: true,
    value: (row) => row.overhead_mcpu,
    render: (row) => <Cpus mcpu={row.overhead_mcpu} />,
  },
  {
    key: 'margin',
    title: 'Margin',
    numeric: true,
    value: (row) => row.margin_ppm,
    render: (row) => <Percent ppm={row.margin_ppm} />,
  },
  {
    key: 'error',
    title: 'Error, p99',
    numeric: true,
    value: (row) => row.measured_p99_lower_ppm,
    render: (row) => <ErrorFigure ppm={row.measured_p99_lower_ppm} />,
    help: 'As measured there: 99 of 100 errors are not below it.',
  },
  {
    key: 'free',
    title: 'Free',
    numeric: true,
    value: (row) => row.free_mcpu,
    render: (row) => <Cpus mcpu={row.free_mcpu} />,
  },
  {
    key: 'capacity',
    title: 'Capacity',
    numeric: true,
    value: (row) => row.capacity_mcpu,
    render: (row) => <Cpus mcpu={row.capacity_mcpu} />,
  },
  { key: 'backend', title: 'Backend', value: (row) => row.backend },
];

export function WhatIf() {
  const { client } = useApi();
  const [draft, setDraft] = useState<FlavorDraft>(NEW_FLAVOR);
  const faults = flavorFaults(draft);
  const valid = Object.keys(faults).length === 0;
  const ask = useMutation({
    mutationFn: async (body: EvaluationCreate) =>
      (await client.call('POST', '/v1/evaluations', { body })).evaluation,
  });
  const set = (field: keyof FlavorDraft) => (value: string) =>
    setDraft((before) => ({ ...before, [field]: value }));
  const found = ask.data;
  return (
    <>
      <Head title="What if">
        Where would instances of a flavor fit, and why not elsewhere? The
        answer is the scheduler’s own; nothing is booted or stored.
      </Head>
      <Section title="Flavor">
        <Form
          onSubmit={(event) => {
            event.preventDefault();
            if (valid) {
              ask.mutate(flavorRequest(draft));
            }
          }}
        >
          <div className="vs-fields vs-fields--wide">
            <ShareFields draft={draft} set={set} faults={faults} />
            <Field
              id="vcpus"
              title="vCPUs"
              unit=""
              value={draft.vcpus}
              onChange={set('vcpus')}
              faults={faults}
            />
            <Field
              id="instances"
              title="Instances"
              unit=""
              value={draft.instances}
              onChange={set('instances')}
              faults={faults}
            />
            <Choice
              id="backend"
              title="Backend"
              value={draft.backend}
              onChange={set('backend')}
              options={[
                ['', 'the best of each host'],
                ['deadline', 'deadline'],
                ['cfs', 'cfs'],
              ]}
            />
            <Field
              id="maxError"
              title="Largest allocation error"
              unit="%"
              value={draft.maxError}
              onChange={set('maxError')}
              faults={faults}
              hint="Empty: any"
            />
            <FormGroup
              label="Further extra specs, one on a line: key=value"
              fieldId="field-specs"
              className="vs-fields__whole"
            >
              <TextArea
                id="field-specs"
                rows={3}
                resizeOrientation="vertical"
                value={draft.specs}
                validated={faults.specs === undefined ? 'default' : 'error'}
                onChange={(_, value) => set('specs')(value)}
                placeholder="vsched:net_rx_pps=10000"
              />
              {faults.specs !== undefined && (
                <span className="vs-problems">{faults.specs}</span>
              )}
            </FormGroup>
          </div>
          <div className="vs-buttons">
            <Button
              variant="primary"
              type="submit"
              className="vs-read"
              isDisabled={!valid || ask.isPending}
              isLoading={ask.isPending}
            >
              Evaluate
            </Button>
          </div>
        </Form>
        <Problems error={ask.error} />
      </Section>
      {found !== undefined && (
        <>
          <Tiles>
            <Tile
              title="Fits on"
              level={found.hosts_fit === 0 ? 'danger' : undefined}
              note={`of ${count(found.hosts_total, 'host')}`}
            >
              {count(found.hosts_fit, 'host')}
            </Tile>
            <Tile title="Room" note="instances, on all hosts">
              {found.room ?? 'unlimited'}
            </Tile>
            <Tile
              title="Asked for"
              level={found.all_fit ? undefined : 'warning'}
              note={found.all_fit ? 'each has a place' : 'not all have a place'}
            >
              {count(found.instances, 'instance')}
            </Tile>
          </Tiles>
          {found.placed.length > 0 && (
            <Alert
              isInline
              variant="info"
              title={`They would go to ${found.placed
                .slice(0, 12)
                .map((one) => `${one.host} (${count(one.instances, 'instance')})`)
                .join(', ')}${found.placed.length > 12 ? ' and others' : ''}`}
            />
          )}
          <Section title="Hosts">
            <DataTable
              id="evaluated"
              label="Evaluated hosts"
              rows={found.hosts}
              columns={COLUMNS}
              facets={FACETS}
              rowKey={(row) => row.host}
              sort={{ key: 'score', direction: 'desc' }}
              empty={<NoHost />}
            />
          </Section>
        </>
      )}
    </>
  );
}
