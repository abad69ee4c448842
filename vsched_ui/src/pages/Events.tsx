// SPDX-License-Identifier: Apache-2.0

import { FormSelect, FormSelectOption } from '@patternfly/react-core';

import type { Event } from '../api/types';
import { useAddressed } from '../components/addressed';
import { EventList } from '../components/EventList';
import { Head, Section } from '../components/Section';
import { SERVER, ServerFilter } from '../components/ServerFilter';
import { serverQuery } from '../model/identity';

const SEVERITIES: readonly Event['severity'][] = ['error', 'warning', 'info'];

export function Events() {
  const [severity, setSeverity] = useAddressed('severity');
  const [server] = useAddressed(SERVER);
  const known = SEVERITIES.find((one) => one === severity);
  return (
    <>
      <Head
        title="Events"
        actions={
          <span className="vs-buttons">
            <ServerFilter label="Read events of this server" />
            <FormSelect
              className="vs-choice"
              aria-label="Read events of this severity"
              value={severity}
              onChange={(_, value) => setSeverity(value)}
            >
              <FormSelectOption value="" label="Read all severities" />
              {SEVERITIES.map((one) => (
                <FormSelectOption
                  key={one}
                  value={one}
                  label={`Read severity ${one} only`}
                />
              ))}
            </FormSelect>
          </span>
        }
      >
        Newest first: refusals, repaired drift, degradations, changes by
        operators. Columns sort and filter what was read; the selections here
        ask the service.
      </Head>
      <Section title="What happened">
        <EventList
          id="events"
          query={{
            ...(known === undefined ? {} : { severity: known }),
            ...serverQuery(server),
          }}
        />
      </Section>
    </>
  );
}
