// SPDX-License-Identifier: Apache-2.0

// Inputs of forms.

import {
  FormGroup,
  FormHelperText,
  FormSelect,
  FormSelectOption,
  HelperText,
  HelperTextItem,
  TextInput,
} from '@patternfly/react-core';
import type { ReactNode } from 'react';

import type { ShareDraft, ShareFaults } from '../model/changes';

/** What is reserved for each vCPU: the share, and the period it is given in. */
export function ShareFields({
  draft,
  set,
  faults,
}: {
  draft: ShareDraft;
  set: (field: keyof ShareDraft) => (value: string) => void;
  faults: ShareFaults;
}) {
  return (
    <>
      <Field
        id="share"
        title="Share of a CPU for each vCPU"
        unit="%"
        value={draft.share}
        onChange={set('share')}
        faults={faults}
        hint="In every period"
      />
      <Field
        id="period"
        title="Period"
        unit="ms"
        value={draft.period}
        onChange={set('period')}
        faults={faults}
        hint="At most as long as the guest can go without the CPU"
      />
    </>
  );
}

export function Field({
  id,
  title,
  unit,
  value,
  onChange,
  faults,
  hint,
}: {
  id: string;
  title: string;
  unit: string;
  value: string;
  onChange: (value: string) => void;
  faults: Readonly<Record<string, string | undefined>>;
  hint?: ReactNode;
}) {
  const fault = faults[id];
  return (
    <FormGroup
      label={unit === '' ? title : `${title} (${unit})`}
      fieldId={`field-${id}`}
    >
      <TextInput
        id={`field-${id}`}
        inputMode="decimal"
        value={value}
        validated={fault === undefined ? 'default' : 'error'}
        aria-invalid={fault !== undefined}
        aria-describedby={`hint-${id}`}
        onChange={(_, text) => onChange(text)}
      />
      <FormHelperText>
        <HelperText id={`hint-${id}`}>
          {(fault ?? hint) !== undefined && (
            <HelperTextItem variant={fault === undefined ? 'default' : 'error'}>
              {fault ?? hint}
            </HelperTextItem>
          )}
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}

export function Choice({
  id,
  title,
  value,
  onChange,
  options,
  hint,
}: {
  id: string;
  title: string;
  value: string;
  onChange: (value: string) => void;
  options: readonly (readonly [string, string])[];
  hint?: ReactNode;
}) {
  return (
    <FormGroup label={title} fieldId={`field-${id}`}>
      <FormSelect
        id={`field-${id}`}
        value={value}
        {...(hint === undefined ? {} : { 'aria-describedby': `hint-${id}` })}
        onChange={(_, text) => onChange(text)}
      >
        {options.map(([option, label]) => (
          <FormSelectOption key={option} value={option} label={label} />
        ))}
      </FormSelect>
      {hint !== undefined && (
        <FormHelperText>
          <HelperText id={`hint-${id}`}>
            <HelperTextItem>{hint}</HelperTextItem>
          </HelperText>
        </FormHelperText>
      )}
    </FormGroup>
  );
}
