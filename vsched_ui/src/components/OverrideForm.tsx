// SPDX-License-Identifier: Apache-2.0

import {
  Button,
  Form,
  Modal,
  ModalBody,
  ModalFooter,
  ModalHeader,
} from '@patternfly/react-core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';

import { useChange } from '../api/mutations';
import { patchReservation } from '../api/singles';
import type { Instance, Reservation, Wanted } from '../api/types';
import { useApi } from '../app/api';
import {
  type Draft,
  changesOf,
  draftOf,
  differing,
  evaluatedOverride,
  type Faults,
  faultsOf,
  fieldTitle,
  isConflict,
  isOutdated,
  rebased,
} from '../model/changes';
import { identityOf, titleOf } from '../model/identity';
import { number } from '../model/numbers';
import { FIELDS, FIELD_NAMES, type FieldName } from '../model/overrideFields';
import { bandwidthMcpu, runtimeUs } from '../model/shares';
import { cpus, microseconds, text } from '../model/units';
import { Verdict } from './Evaluated';
import { Choice, Field, ShareFields } from './fields';
import { Loading, Problems } from './states';

/** Typing ends before the service is asked. */
const PAUSE_MS = 300;

/**
 * Change what is reserved for an instance, or reserve something for it.
 *
 * The service evaluates the draft before it can be sent. What is sent names
 * the generation that it is based on: a change by another user is not
 * overwritten. What the user has typed stays until the form is closed.
 *
 * @param now - what is desired, as it was read last.
 */
export function OverrideForm({
  instance,
  now,
  close,
}: {
  instance: Instance;
  now: Reservation | null;
  close: () => void;
}) {
  const { client } = useApi();
  // As it was when the form was opened, or read again.
  const [base, setBase] = useState(now);
  const [draft, setDraft] = useState(() => draftOf(now));
  const faults = faultsOf(draft, instance.vcpus);
  const valid = Object.keys(faults).length === 0;
  const changes = valid ? changesOf(draft, base) : {};
  const changed = Object.keys(changes).length > 0;

  const override = valid ? JSON.stringify(evaluatedOverride(draft)) : '';
  const asked = useDelayed(override);
  const evaluation = useQuery({
    queryKey: ['evaluation', instance.host, instance.vcpus, asked],
    queryFn: async ({ signal }) => {
      if (instance.host === null) {
        throw new Error('Its host is not known: nothing can be evaluated.');
      }
      const answer = await client.call('POST', '/v1/evaluations', {
        body: {
          extra_specs: {},
          vcpus: instance.vcpus,
          hosts: [instance.host],
          override: JSON.parse(asked) as Wanted,
        },
        signal,
      });
      return answer.evaluation;
    },
    enabled: asked !== '',
    retry: false,
  });
  const verdict = evaluation.data?.hosts[0];
  const current = valid && asked === override;

  const send = useChange({
    send: async () =>
      (
        await (base === null
          ? client.call('POST', '/v1/reservations', {
              body: {
                instance_uuid: instance.instance_uuid,
                ...changesOf(draft, base),
              },
            })
          : client.call('PATCH', '/v1/reservations/{instance_uuid}', {
              path: { instance_uuid: instance.instance_uuid },
              body: { ...changes, generation: base.generation },
            }))
      ).reservation,
    keys: [['reservation', instance.instance_uuid]],
    show: (cache, found) =>
      patchReservation(cache, instance.instance_uuid, found),
    done: close,
  });
  const conflict = isConflict(send.error);
  // Its own change is read before the form is closed.
  const outdated = !send.isPending && !send.isSuccess && isOutdated(base, now);

  const set = (field: keyof Draft) => (value: string) =>
    setDraft((before) => ({ ...before, [field]: value }));

  return (
    <Modal
      variant="medium"
      isOpen
      onClose={close}
      aria-labelledby="override-title"
      className="vs-modal"
    >
      <ModalHeader
        labelId="override-title"
        title={
          base === null
            ? `Reserve CPU time for ${titleOf(identityOf(instance))}`
            : `Change the reservation of ${titleOf(identityOf(instance))}`
        }
        description={
          base?.source === 'metadata'
            ? 'This makes an override, which stands over the flavor until it is removed.'
            : `${instance.vcpus} vCPUs on ${instance.host}`
        }
      />
      <ModalBody>
        <Form
          id="override"
          onSubmit={(event) => {
            event.preventDefault();
            if (verdict !== undefined && changed && current && !send.isPending) {
              send.mutate();
            }
          }}
        >
          <div className="vs-fields">
            <ShareFields draft={draft} set={set} faults={faults} />
            {FIELD_NAMES.map((name) => (
              <OverrideField
                key={name}
                name={name}
                value={draft[name]}
                onChange={set(name)}
                faults={faults}
              />
            ))}
          </div>
        </Form>
        <p className="vs-sum">{valid ? summary(draft, instance.vcpus) : ''}</p>
        <section aria-label="Evaluation" aria-live="polite">
          <Problems error={evaluation.error} />
          {verdict !== undefined ? (
            <Verdict host={verdict} now={base} />
          ) : (
            evaluation.error === null && valid && <Loading lines={3} />
          )}
        </section>
        <Problems error={conflict ? null : send.error} />
        {(conflict || outdated) && (
          <div className="vs-problems" role="alert">
            {conflict
              ? 'Another user has changed it meanwhile. Nothing was sent.'
              : 'It has changed since the form was opened.'}
            {outdated && ` ${changedText(base, now)}`} What you typed stays.{' '}
            <Button
              variant="link"
              isInline
              onClick={() => {
                send.reset();
                setDraft(rebased(draft, base, now));
                setBase(now);
              }}
            >
              Base this on the newest
            </Button>
          </div>
        )}
      </ModalBody>
      <ModalFooter>
        <Button
          variant="primary"
          type="submit"
          form="override"
          isLoading={send.isPending}
          isDisabled={
            verdict === undefined || !changed || !current || send.isPending
          }
        >
          {base === null ? 'Reserve' : 'Change'}
        </Button>
        <Button variant="link" onClick={close}>
          Leave as it is
        </Button>
      </ModalFooter>
    </Modal>
  );
}

function OverrideField({
  name,
  value,
  onChange,
  faults,
}: {
  name: FieldName;
  value: string;
  onChange: (value: string) => void;
  faults: Faults;
}) {
  const shape = FIELDS[name];
  const common = { id: name, title: shape.title, value, onChange };
  return shape.kind === 'choice' ? (
    <Choice {...common} options={shape.options} hint={shape.help} />
  ) : (
    <Field
      {...common}
      unit={shape.unit}
      faults={faults}
      hint={`${shape.help} Empty: the flavor’s.`}
    />
  );
}

/** What another user has changed. */
function changedText(
  base: Reservation | null,
  now: Reservation | null,
): string {
  const names = differing(base, now);
  return names.length === 0
    ? 'All fields are as they were.'
    : `Changed: ${names.map(fieldTitle).join(', ')}.`;
}

/** What the draft adds up to. */
function summary(draft: Draft, vcpus: number): string {
  const periodUs = Math.round((number(draft.period) ?? 0) * 1000);
  const runtime = runtimeUs(number(draft.share) ?? 0, periodUs);
  return (
    `${text(microseconds(runtime))} every ${text(microseconds(periodUs))} ` +
    `on each of ${vcpus} vCPUs: ${text(cpus(bandwidthMcpu(runtime, periodUs, vcpus)))} in all`
  );
}

/** A text once it has not changed for a moment. */
function useDelayed(value: string): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(value), PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [value]);
  return settled;
}
