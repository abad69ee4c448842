// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import type { DetailedHost, Finding } from '../api/types';
import { furtherFindings } from './findings';

const finding = (subject: string, text: string, remedy = ''): Finding => ({
  level: 'problem',
  subject,
  text,
  remedy,
});

const BACKENDS: DetailedHost['backends'] = [
  { name: 'deadline', usable: false, reasons: ['too old', 'no root'] },
  { name: 'cfs', usable: true, reasons: ['slow'] },
];

const left = (...findings: Finding[]) =>
  furtherFindings({ backends: BACKENDS, findings });

it('leaves out what the backends have', () => {
  const other = finding('tick', 'a tick is 4000 us');
  expect(
    left(finding('deadline', 'this host cannot use it: too old; no root'), other),
  ).toEqual([other]);
});

it('keeps what the backends lack', () => {
  const kept = [
    finding('deadline', 'this host cannot use it: too old'),
    finding('deadline', 'too old; no root', 'a newer kernel'),
    finding('cfs', 'this host cannot use it: slow'),
    finding('rtds', 'this host cannot use it: too old; no root'),
  ];
  expect(left(...kept)).toEqual(kept);
});

it('keeps apart no findings and none that are reported', () => {
  expect(left()).toEqual([]);
  expect(furtherFindings({ backends: BACKENDS, findings: null })).toBeNull();
});
