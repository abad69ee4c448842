// SPDX-License-Identifier: Apache-2.0

import { Button, Tab, TabTitleText, Tabs } from '@patternfly/react-core';
import { CheckCircleIcon } from '@patternfly/react-icons/dist/esm/icons/check-circle-icon';
import { ExclamationTriangleIcon } from '@patternfly/react-icons/dist/esm/icons/exclamation-triangle-icon';
import { useMutation } from '@tanstack/react-query';
import { type ReactNode, useMemo } from 'react';
import { useParams, useSearchParams } from 'react-router';

import { ApiError } from '../api/client';
import { EVERY, useHost, useList } from '../api/hooks';
import type { DetailedHost, Difference, Finding, Host, Instance, Reservation } from '../api/types';
import { RULES, useApi } from '../app/api';
import { useCharts } from '../components/Chart';
import { CpuStack } from '../components/CpuStack';
import { type Column, DataTable, type Facet } from '../components/DataTable';
import { EventList } from '../components/EventList';
import { Ago, Cpus, Figure, Micros, Moment, Percent, Unknown } from '../components/figures';
import { JobList } from '../components/JobList';
import { identityColumns } from '../components/identity';
import { InstanceLink } from '../components/links';
import { ErrorProfiles, Measure, OverheadProfiles } from '../components/Profiles';
import { Facts, Head, Section, Tile, Tiles } from '../components/Section';
import {
  Empty,
  Failure,
  Loaded,
  OutdatedNote,
  Problems,
  State,
} from '../components/states';
import { furtherFindings } from '../model/findings';
import { identityOf } from '../model/identity';
import {
  ENFORCERS,
  NO_STATES,
  STATES,
  enforcerOf,
  stateOf,
} from '../model/reservations';
import { sharePpm, usedPpm } from '../model/shares';
import { count, fixed } from '../model/units';

const TABS = [
  ['cpu', 'CPU and instances'],
  ['error', 'Error profile'],
  ['overhead', 'Overhead profile'],
  ['doctor', 'Doctor and audit'],
  ['jobs', 'Jobs'],
  ['events', 'Events'],
] as const;

export function HostView() {
  useCharts();
  const { name = '' } = useParams();
  const host = useHost(name);
  return (
    <Loaded
      key={name}
      result={
        // A host that was deleted is not shown as it was.
        host.error instanceof ApiError && host.error.status === 404
          ? { ...host, data: undefined }
          : host
      }
      lines={8}
    >
      {(found) => <Whole host={found} />}
    </Loaded>
  );
}

function Whole({ host }: { host: DetailedHost }) {
  const [address, setAddress] = useSearchParams();
  const asked = address.get('tab');
  const tab = TABS.some(([key]) => key === asked) ? (asked ?? 'cpu') : 'cpu';
  const free =
    host.capacity_mcpu === null || host.admitted_mcpu === null
      ? null
      : Math.max(0, host.capacity_mcpu - host.admitted_mcpu);
  const views: Record<string, () => ReactNode> = {
    cpu: () => <Cpu host={host} />,
    error: () => (
      <Section
        title="Error of CPU allocation"
        note="How far the CPU time that was got in each second is from what was reserved."
      >
        <Measure host={host.name} kind="error" />
        <ErrorProfiles host={host.name} />
      </Section>
    ),
    overhead: () => (
      <Section
        title="Cost of I/O"
        note="CPU time that the host uses for packets and blocks of its instances."
      >
        <Measure host={host.name} kind="overhead" />
        <OverheadProfiles host={host.name} />
      </Section>
    ),
    doctor: () => <Doctor host={host} />,
    jobs: () => <JobList id="jobs" query={{ host: host.name }} />,
    events: () => <EventList id="events" query={{ host: host.name }} />,
  };
  return (
    <>
      <Head
        title={host.name}
        above={{ to: '/hosts', text: 'Hosts' }}
        state={<State of={host.state} />}
      />
      <Tiles>
        <Tile title="Capacity">
          <Cpus mcpu={host.capacity_mcpu} />
        </Tile>
        <Tile
          title="Reserved"
          note={
            <>
              <Percent ppm={usedPpm(host.admitted_mcpu, host.capacity_mcpu)} /> of
              the capacity
            </>
          }
        >
          <Cpus mcpu={host.admitted_mcpu} />
        </Tile>
        <Tile title="Free">
          <Cpus mcpu={free} />
        </Tile>
        <Tile title="CPUs" note={<>tick <Micros us={host.tick_us} /></>}>
          {host.cpus ?? '–'}
        </Tile>
        <Tile title="Instances">{host.instances}</Tile>
        <Tile
          title="Last report"
          level={host.state === 'down' ? 'danger' : undefined}
          note={host.agent_version === null ? '' : `agent ${host.agent_version}`}
        >
          <Ago at={host.last_report_at} everyMs={1_000} />
        </Tile>
      </Tiles>
      <Tabs
        activeKey={tab}
        aria-label={`Views of ${host.name}`}
        onSelect={(_, key) => setAddress({ tab: String(key) }, { replace: true })}
      >
        {TABS.map(([key, title]) => (
          <Tab
            key={key}
            eventKey={key}
            title={<TabTitleText>{title}</TabTitleText>}
          >
            <div className="vs-tab">{key === tab && views[key]?.()}</div>
          </Tab>
        ))}
      </Tabs>
    </>
  );
}

interface Row {
  instance: Instance;
  /** Null if it has none, undefined if that is not known. */
  reservation: Reservation | null | undefined;
}

const FACETS: readonly Facet<Row>[] = [
  {
    key: 'state',
    title: 'Reservation',
    value: (row) => stateOf(row.reservation),
    options: [...STATES, ...NO_STATES],
  },
  {
    key: 'backend',
    title: 'Enforced by',
    value: (row) => enforcerOf(row.reservation),
    options: ENFORCERS,
  },
];

const INSTANCES: readonly Column<Row>[] = [
  ...identityColumns<Row>((row) => identityOf(row.instance)),
  {
    key: 'vcpus',
    title: 'vCPUs',
    numeric: true,
    value: (row) => row.instance.vcpus,
  },
  {
    key: 'state',
    title: 'Reservation',
    value: (row) =>
      row.reservation === undefined ? null : stateOf(row.reservation),
    render: (row) =>
      row.reservation === undefined ? (
        <Unknown />
      ) : row.reservation === null ? (
        'none'
      ) : (
        <State
          of={row.reservation.state}
          title={row.reservation.detail ?? ''}
        />
      ),
  },
  {
    key: 'share',
    title: 'Share',
    numeric: true,
    value: (row) =>
      sharePpm(
        row.reservation?.runtime_us ?? null,
        row.reservation?.period_us ?? null,
      ),
    render: (row) => (
      <Percent
        ppm={sharePpm(
          row.reservation?.runtime_us ?? null,
          row.reservation?.period_us ?? null,
        )}
      />
    ),
    help: 'What each vCPU is reserved of a CPU.',
  },
  {
    key: 'bandwidth',
    title: 'Reserved',
    numeric: true,
    value: (row) => row.reservation?.bandwidth_mcpu,
    render: (row) => <Cpus mcpu={row.reservation?.bandwidth_mcpu} />,
  },
  {
    key: 'backend',
    title: 'Backend',
    value: (row) => row.reservation?.enforced?.backend ?? null,
  },
  {
    key: 'charged',
    title: 'Charged for I/O',
    numeric: true,
    value: (row) => row.reservation?.io?.charged_mcpu,
    render: (row) => <Cpus mcpu={row.reservation?.io?.charged_mcpu} />,
    help: 'What the work of the host for the I/O of the instance takes of its reservation.',
  },
];

function Cpu({ host }: { host: Host }) {
  const instances = useList(
    '/v1/instances',
    { host: host.name, present: true },
    EVERY.list,
  );
  const reservations = useList(
    '/v1/reservations',
    { host: host.name },
    EVERY.list,
  );
  const rows = useMemo(() => {
    const held = new Map(
      reservations.data?.map((one) => [one.instance_uuid, one]),
    );
    return instances.data?.map((instance) => ({
      instance,
      reservation:
        held.get(instance.instance_uuid) ??
        (reservations.complete ? null : undefined),
    }));
  }, [instances.data, reservations.data, reservations.complete]);
  return (
    <>
      <Section
        title="Who uses the CPUs"
        note="By second, as the agent reports it. The space above the stack is idle time."
      >
        <Loaded result={instances}>
          {(found) => <CpuStack host={host} instances={found} />}
        </Loaded>
      </Section>
      <Section title="Instances">
        {reservations.complete && (
          <OutdatedNote of={reservations} what="What is reserved" />
        )}
        <DataTable
          id="instances"
          label={`Instances of ${host.name}`}
          rows={rows}
          error={instances.error}
          readAt={instances.readAt}
          retry={instances.refetch}
          incomplete={!instances.complete}
          columns={INSTANCES}
          facets={FACETS}
          rowKey={(row) => row.instance.instance_uuid}
          empty={<Empty title="No instances run here" />}
        />
        {reservations.error !== null && !reservations.complete && (
          <>
            <p className="vs-small" role="status">
              What is reserved for these instances is not known.
            </p>
            <Failure
              error={reservations.error}
              retry={reservations.refetch}
            />
          </>
        )}
      </Section>
    </>
  );
}

function Check({ good, children }: { good: boolean; children: ReactNode }) {
  return (
    <li className={good ? 'vs-check' : 'vs-check vs-check--bad'}>
      {good ? (
        <CheckCircleIcon title="good" />
      ) : (
        <ExclamationTriangleIcon title="attention" />
      )}
      <span>{children}</span>
    </li>
  );
}

function Doctor({ host }: { host: DetailedHost }) {
  const placement = host.placement;
  const checked = host.verification;
  return (
    <>
      <Section
        title="Doctor"
        note="What the agent found that this host can enforce, and what stands against it."
      >
        <ul className="vs-checks">
          <Check good={host.state === 'up'}>
            {host.state === 'up'
              ? 'The agent reports.'
              : 'The agent does not report. What it enforced is still in force.'}
          </Check>
          {host.problem !== null && <Check good={false}>{host.problem}</Check>}
          {host.backends.map((one) => (
            <Check key={one.name} good={one.usable}>
              <strong>{one.name}</strong>{' '}
              {one.usable ? 'can be used.' : 'cannot be used.'}
              {one.reasons.map((reason) => (
                <span key={reason} className="vs-reason">
                  {reason}
                </span>
              ))}
            </Check>
          ))}
          {placement !== null && (
            <Check good={placement.state !== 'failed'}>
              placement: {placement.state}
              {placement.detail !== '' && (
                <span className="vs-reason">{placement.detail}</span>
              )}
            </Check>
          )}
          {checked?.contradictions.map((one) => (
            <Check key={one.code + one.detail} good={false}>
              {one.detail} <code className="vs-code">{one.code}</code>
            </Check>
          ))}
          {host.clock_skew_s !== null && (
            <Check good={Math.abs(host.clock_skew_s) < 5}>
              Its clock is{' '}
              <Figure
                of={{ value: fixed(Math.abs(host.clock_skew_s), 3), unit: 's' }}
              />{' '}
              {host.clock_skew_s < 0 ? 'behind' : 'ahead of'} the collector’s.
            </Check>
          )}
        </ul>
        <Facts
          of={[
            ['Kernel', host.kernel ?? '–'],
            ['Hypervisor', host.hypervisor ?? '–'],
            ['Kept back for the host', <Cpus mcpu={host.reserve_mcpu} />],
            ['Leaked bandwidth', <Cpus mcpu={host.leaked_mcpu} />],
            [
              'Budget check',
              host.budget_check_us === null
                ? '–'
                : host.budget_check_us === 0
                  ? 'off'
                  : `every ${host.budget_check_us} µs`,
            ],
            ['Offered to placement', <Cpus mcpu={placement?.offered_mcpu} />],
            ['Claimed in placement', <Cpus mcpu={placement?.claimed_mcpu} />],
            [
              'Confidence of margins',
              <Percent
                ppm={
                  host.policy === null
                    ? null
                    : Math.round(host.policy.confidence * 1_000_000)
                }
              />,
            ],
            ['Largest margin', <Percent ppm={host.policy?.max_margin_ppm} />],
            [
              'Compared with Nova',
              <Moment at={checked === null ? null : checked.checked_at} />,
            ],
          ]}
        />
      </Section>
      <Findings of={host} />
      <AuditSection host={host.name} />
    </>
  );
}

const RANK: Record<string, number> = { note: 0, problem: 1 };

const LEVELS: readonly Facet<Finding>[] = [
  {
    key: 'level',
    title: 'Level',
    value: (row) => row.level,
    options: ['problem', 'note'],
  },
];

const FINDINGS: readonly Column<Finding>[] = [
  {
    key: 'level',
    title: 'Level',
    value: (row) => RANK[row.level] ?? -1,
    render: (row) => <State of={row.level} />,
    text: (row) => row.level,
  },
  { key: 'subject', title: 'Checked', value: (row) => row.subject },
  {
    key: 'text',
    title: 'Found',
    value: (row) => row.text,
    render: (row) => <span className="vs-detail">{row.text}</span>,
  },
  {
    key: 'remedy',
    title: 'Remedy',
    value: (row) => row.remedy,
    render: (row) =>
      row.remedy === '' ? (
        <Unknown />
      ) : (
        <span className="vs-detail">{row.remedy}</span>
      ),
  },
];

function Findings({ of }: { of: DetailedHost }) {
  const found = useMemo(() => furtherFindings(of), [of]);
  return (
    <Section
      title="Findings"
      note="What else limits this host, and what can be done about it. The agent repeats those checks that only read; “vsched-agent doctor” on the host has all."
    >
      {found === null ? (
        <Empty title="Findings are not reported">
          The agent has not reported them yet, or is of a release that does not.
        </Empty>
      ) : found.length === 0 ? (
        <Empty title="No findings">Nothing else that was checked limits it.</Empty>
      ) : (
        <DataTable
          id="findings"
          label="Findings"
          rows={found}
          columns={FINDINGS}
          facets={LEVELS}
          rowKey={(row) => `${row.subject} ${row.text}`}
          sort={{ key: 'level', direction: 'desc' }}
        />
      )}
    </Section>
  );
}

const DIFFERENCE_FACETS: readonly Facet<Difference>[] = [
  {
    key: 'kind',
    title: 'Kind',
    value: (row) => row.kind,
    options: [
      'claim_differs',
      'elsewhere',
      'foreign',
      'leftover',
      'no_provider',
      'not_enforced',
      'not_held',
      'not_reporting',
      'unlisted',
    ] satisfies Difference['kind'][],
  },
];

const DIFFERENCES: readonly Column<Difference>[] = [
  { key: 'kind', title: 'Kind', value: (row) => row.kind },
  {
    key: 'consumer',
    title: 'Consumer',
    value: (row) => row.consumer,
    render: (row) =>
      row.consumer === null ? 'the host' : <InstanceLink uuid={row.consumer} />,
  },
  {
    key: 'claimed',
    title: 'Claimed',
    numeric: true,
    value: (row) => row.claimed_mcpu,
    render: (row) => <Cpus mcpu={row.claimed_mcpu} />,
    help: 'In placement.',
  },
  {
    key: 'reserved',
    title: 'Reserved',
    numeric: true,
    value: (row) => row.promised_mcpu,
    render: (row) => <Cpus mcpu={row.promised_mcpu} />,
    help: 'By the database.',
  },
  {
    key: 'held',
    title: 'Held',
    numeric: true,
    value: (row) => row.held_mcpu,
    render: (row) => <Cpus mcpu={row.held_mcpu} />,
    help: 'By the kernel, as the agent last saw it.',
  },
  {
    key: 'detail',
    title: 'What differs',
    value: (row) => row.detail,
    render: (row) => <span className="vs-detail">{row.detail}</span>,
  },
];

function AuditSection({ host }: { host: string }) {
  const { client, may } = useApi();
  // It changes nothing, but asks placement and Nova: on demand only.
  const audit = useMutation({
    mutationFn: () =>
      client.call('GET', '/v1/hosts/{name}/audit', { path: { name: host } }),
  });
  const found = audit.data?.audit;
  return (
    <Section
      title="Audit"
      note="Compares what instances claim in placement, what is reserved by the database, and what the kernel holds."
      {...(may(RULES.auditHost)
        ? {
            actions: (
              <Button
                variant="secondary"
                className="vs-read"
                isLoading={audit.isPending}
                isDisabled={audit.isPending}
                onClick={() => audit.mutate()}
              >
                Compare now
              </Button>
            ),
          }
        : {})}
    >
      <Problems error={audit.error} />
      <div role="status">
        {audit.isPending ? (
          <p className="vs-note">Comparing …</p>
        ) : audit.isError ? (
          <p className="vs-note">It could not be compared.</p>
        ) : found === undefined ? (
          <p className="vs-note">
            {may(RULES.auditHost)
              ? 'Not compared yet.'
              : 'The policies do not allow this user to compare them.'}
          </p>
        ) : found.agrees ? (
          <p className="vs-well">
            <CheckCircleIcon /> Placement, database and kernel agree.
          </p>
        ) : (
          <p>{count(found.differences.length, 'difference')}</p>
        )}
      </div>
      {found !== undefined && !found.agrees && (
        <DataTable
          id="audit"
          label="Differences"
          rows={found.differences}
          columns={DIFFERENCES}
          facets={DIFFERENCE_FACETS}
          rowKey={(row) => `${row.kind} ${row.consumer} ${row.detail}`}
        />
      )}
    </Section>
  );
}
