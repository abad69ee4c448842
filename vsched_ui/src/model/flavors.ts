// SPDX-License-Identifier: Apache-2.0

// The form of a flavor, and the evaluation that it asks for.

import type { EvaluationCreate } from '../api/types';
import { type ShareDraft, shareFaults } from './changes';
import { number } from './numbers';
import { runtimeUs } from './shares';

export interface FlavorDraft extends ShareDraft {
  vcpus: string;
  instances: string;
  backend: string;
  maxError: string;
  specs: string;
}

export const NEW_FLAVOR: FlavorDraft = {
  share: '50',
  period: '20',
  vcpus: '1',
  instances: '1',
  backend: '',
  maxError: '',
  specs: '',
};

export type FlavorFaults = Partial<Record<keyof FlavorDraft, string>>;

function whole(text: string, most: number): boolean {
  const value = number(text);
  return (
    value !== null && Number.isInteger(value) && value >= 1 && value <= most
  );
}

export function flavorFaults(draft: FlavorDraft): FlavorFaults {
  const faults: FlavorFaults = shareFaults(draft);
  if (!whole(draft.vcpus, 1024)) {
    faults.vcpus = '1 to 1024';
  }
  if (!whole(draft.instances, 1000)) {
    faults.instances = '1 to 1000';
  }
  const most = draft.maxError === '' ? 1 : number(draft.maxError);
  if (most === null || most <= 0) {
    faults.maxError = 'more than 0 %, or empty for any';
  }
  if (lines(draft.specs).some((line) => !/^[^=\s]+\s*=/.test(line))) {
    faults.specs = 'each line is key=value';
  }
  return faults;
}

export function flavorRequest(draft: FlavorDraft): EvaluationCreate {
  const periodUs = Math.round((number(draft.period) ?? 0) * 1000);
  const specs: Record<string, string> = {
    'vsched:cpu_runtime_us': String(
      runtimeUs(number(draft.share) ?? 0, periodUs),
    ),
    'vsched:cpu_period_us': String(periodUs),
  };
  if (draft.backend !== '') {
    specs['vsched:backend'] = draft.backend;
  }
  if (draft.maxError !== '') {
    specs['vsched:max_alloc_error_pct'] = draft.maxError.trim();
  }
  for (const line of lines(draft.specs)) {
    const [key = '', ...rest] = line.split('=');
    specs[key.trim()] = rest.join('=').trim();
  }
  return {
    extra_specs: specs,
    vcpus: number(draft.vcpus) ?? 1,
    instances: number(draft.instances) ?? 1,
  };
}

function lines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
