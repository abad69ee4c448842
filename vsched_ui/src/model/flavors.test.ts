// SPDX-License-Identifier: Apache-2.0

import { expect, it } from 'vitest';

import { NEW_FLAVOR, flavorFaults, flavorRequest } from './flavors';

it('asks for what the form holds', () => {
  expect(flavorFaults(NEW_FLAVOR)).toEqual({});
  expect(
    flavorRequest({
      ...NEW_FLAVOR,
      share: '25',
      vcpus: '2',
      instances: '3',
      backend: 'deadline',
      maxError: ' 2 ',
      specs: 'vsched:net_rx_pps = 1000\n\nhw:cpu_policy=shared\na=b=c',
    }),
  ).toEqual({
    extra_specs: {
      'vsched:cpu_runtime_us': '5000',
      'vsched:cpu_period_us': '20000',
      'vsched:backend': 'deadline',
      'vsched:max_alloc_error_pct': '2',
      'vsched:net_rx_pps': '1000',
      'hw:cpu_policy': 'shared',
      a: 'b=c',
    },
    vcpus: 2,
    instances: 3,
  });
});

it('names what is wrong', () => {
  expect(
    Object.keys(
      flavorFaults({
        ...NEW_FLAVOR,
        share: '0',
        period: '0.05',
        vcpus: '1.5',
        instances: '1001',
        maxError: 'x',
        specs: 'no value',
      }),
    ),
  ).toEqual(['share', 'period', 'vcpus', 'instances', 'maxError', 'specs']);
});
