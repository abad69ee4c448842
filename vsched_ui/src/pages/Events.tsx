// SPDX-License-Identifier: Apache-2.0

import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useSearchParams } from 'react-router';

import { EventList } from '../components/EventList';
import { Head, Section } from '../components/Section';

const SEVERITIES = ['error', 'warning', 'info'];

export function Events() {
  const [address, setAddress] = useSearchParams();
  const severity = address.get('severity') ?? '';
  return (
    <>
      <Head
        title="Events"
        actions={
          <FormSelect
            aria-label="Read events of this severity"
            value={severity}
            onChange={(_, value) =>
              setAddress(value === '' ? {} : { severity: value }, {
                replace: true,
              })
            }
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
        }
      >
        Newest first: refusals, repaired drift, degradations, changes by
        operators. Columns sort and filter what was read; the selection here
        asks the service.
      </Head>
      <Section title="What happened">
        <EventList
          id="events"
          query={SEVERITIES.includes(severity) ? { severity } : {}}
        />
      </Section>
    </>
  );
}
