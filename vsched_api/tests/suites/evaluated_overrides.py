# SPDX-License-Identifier: Apache-2.0

"""Where instances with an override would fit: on every database alike."""

from vsched_api.tests import base
from vsched_api.tests.suites import evaluations
from vsched_lib.contract import errors
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles


class EvaluatedOverrides(evaluations.Asking):
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def override(self, status=200, specs=evaluations.QUARTER, **fields):
        return self.ask(
            status,
            extra_specs=specs,
            vcpus=2,
            hosts=['node1', 'node2'],
            override=fields,
        )

    def fits(self, **fields):
        return {
            one['host']: one['fits']
            for one in self.override(**fields)['hosts']
        }

    def test_an_override_of_the_reservation(self):
        for specs, fields, demand_mcpu in (
            (evaluations.QUARTER, {'runtime_us': 10_000}, 1_000),
            (evaluations.QUARTER, {'period_us': 10_000}, 1_000),
            (
                {**evaluations.QUARTER, 'vsched:backend': 'cfs'},
                {'weight': 7},
                0,
            ),
            (
                {**evaluations.QUARTER, 'vsched:backend': 'cfs'},
                {'backend': 'deadline'},
                500,
            ),
            (
                {**evaluations.QUARTER, 'vsched:backend': 'cfs'},
                {'backend': None, 'mode': 'work_conserving'},
                500,
            ),
            ({}, {'runtime_us': 5_000}, 500),
        ):
            found = self.override(specs=specs, **fields)
            self.assertEqual(
                {demand_mcpu},
                {one['demand_mcpu'] for one in found['hosts']},
                fields,
            )
        self.assertEqual(
            {'node1': True, 'node2': False}, self.fits(runtime_us=10_000)
        )

    def test_an_override_of_the_error_bound(self):
        self.measure('node1', error_profiles.STARVED)
        self.measure('node2', error_profiles.TIGHT)
        bounded = {**evaluations.QUARTER, 'vsched:max_alloc_error_pct': '2'}
        both = {'node1': True, 'node2': True}
        one = {'node1': False, 'node2': True}
        for specs, fields, fit in (
            (evaluations.QUARTER, {'max_alloc_error_pct': 2}, one),
            (evaluations.QUARTER, {'max_alloc_error_pct': 100}, both),
            (bounded, {'max_alloc_error_pct': 100}, both),
            # The flavor's.
            (bounded, {'max_alloc_error_pct': None}, one),
            (bounded, {'runtime_us': 4_000}, one),
        ):
            self.assertEqual(fit, self.fits(specs=specs, **fields), fields)

    def test_an_override_of_who_pays_for_io(self):
        self.agents['node1'].send(
            listed=False,
            overhead_profiles=(
                overhead_profiles.profile(
                    uuid=base.uuids(1)[0], kernel='6.1.0'
                ),
            ),
        )

        def demand_mcpu(specs, **fields):
            found = self.override(specs=specs, **fields)['hosts']
            return next(one for one in found if one['host'] == 'node1')[
                'demand_mcpu'
            ]

        specs = {**evaluations.QUARTER, 'vsched:net_rx_pps': '2000'}
        above = {**specs, 'vsched:io_charging': 'overprovision'}
        more_mcpu = demand_mcpu(above, weight=7)
        self.assertGreater(more_mcpu, 500)
        for flavor, word, expected_mcpu in (
            (specs, 'overprovision', more_mcpu),
            (specs, None, 500),
            (specs, 'charge', 500),
            (above, None, more_mcpu),
            (above, 'none', 500),
        ):
            self.assertEqual(
                expected_mcpu, demand_mcpu(flavor, io_charging=word), word
            )

    def test_what_of_an_override_decides_nothing(self):
        without = self.ask(
            extra_specs=evaluations.QUARTER, vcpus=2, hosts=['node1', 'node2']
        )
        for fields in (
            {'balloon': 'auto', 'min_vcpus': 1},
            {'balloon': 'off'},
            {'weight': 10_000},
        ):
            self.assertEqual(without, self.override(**fields), fields)

    def test_overrides_that_would_be_refused(self):
        for fields, code, words in (
            ({'min_vcpus': 3}, None, 'has 2 vCPUs'),
            ({'min_vcpus': 1, 'balloon': 'off'}, None, 'min_vcpus'),
            ({'weight': 0}, None, 'override.weight'),
            ({'backend': 'magic'}, None, "'deadline', 'cfs'"),
            ({'colour': 'red'}, None, 'colour'),
            ({}, None, 'override'),
            (
                {'runtime_us': 20_001},
                errors.Code.RESERVATION_INVALID,
                'runtime_us',
            ),
            (
                {'backend': 'cfs', 'mode': 'work_conserving'},
                errors.Code.EXTRA_SPECS_INVALID,
                'cfs',
            ),
            ({'specs': {}, 'weight': 7}, None, 'override.runtime_us'),
        ):
            problem = self.override(400, **fields)[0]
            self.assertIn(words, problem['detail'])
            self.assertEqual(
                code or errors.Code.BAD_REQUEST, problem['code'], fields
            )
        (problem,) = self.ask(400, demand_mcpu=1, override={'weight': 7})
        self.assertIn('demand_mcpu', problem['detail'])
