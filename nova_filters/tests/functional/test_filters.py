# SPDX-License-Identifier: Apache-2.0

"""The filters, called by Nova's own scheduler code."""

import logging

import fixtures

from nova_filters.tests import fakes
from nova_filters.tests.functional import nova_case

if nova_case.MISSING is None:
    from nova import conf as nova_conf
    from nova.scheduler import filters as nova_scheduler_filters

    from nova_filters import filters


class TestFilters(nova_case.NovaCase):
    """With HostState, RequestSpec and the filter handler of Nova."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))

    def names(self, states, spec, index=0):
        return [one.host for one in self.filtered(states, spec, index)]

    def test_nova_finds_them(self):
        found = (
            nova_scheduler_filters.HostFilterHandler().get_matching_classes(
                [
                    'nova.scheduler.filters.all_filters',
                    'nova_filters.filters.all_filters',
                ]
            )
        )
        self.assertEqual(set(), set(filters.all_filters()) - set(found))

    def test_making_one_begins_nothing(self):
        before = fakes.snapshot_threads()
        for kind in filters.all_filters():
            kind()
        self.assertEqual(set(), fakes.snapshot_threads() - before)

    def test_flavors_that_ask_for_nothing(self):
        states = [nova_case.state('node1'), nova_case.state('node2')]
        self.assertEqual(
            ['node1', 'node2'], self.names(states, nova_case.request())
        )
        # Threads of other tests may still write something else.
        self.assertNotIn('vsched: ', self.log.output)

    def test_each_refusal_has_its_reason_in_the_log(self):
        self.set_known(
            fakes.host('full', 1, admitted_mcpu=1_900),
            fakes.host('unmeasured', 2),
            fakes.host(
                'inaccurate', 3, certificates=(fakes.certificate(-900_000),)
            ),
            fakes.host(
                'expensive',
                4,
                prices_ns={'net_rx': 1e6},
                certificates=(fakes.certificate(-5_000),),
            ),
            fakes.host(
                'good',
                5,
                prices_ns={'net_rx': 1e3},
                certificates=(fakes.certificate(-5_000),),
            ),
        )
        spec = nova_case.request(
            cpu_runtime_us='5000',
            max_alloc_error_pct='2',
            io_charging='charge',
            net_rx_pps='1000',
        )
        self.assertEqual(
            ['good'],
            self.names(
                [
                    nova_case.state(name)
                    for name in (
                        'full',
                        'unmeasured',
                        'inaccurate',
                        'expensive',
                        'good',
                        'agentless',
                    )
                ],
                spec,
            ),
        )
        lines = [
            line
            for line in self.log.output.splitlines()
            if line.startswith('vsched: ')
        ]
        self.assertEqual(3, len(lines), lines)
        for line, words in zip(
            lines,
            (
                (
                    'VschedReservationFilter refused 2 of 6 hosts',
                    'capacity=1 (full: 250 mcpu needed, 0 of 1900 mcpu free)',
                    'missing=1 (agentless: it has no agent)',
                ),
                (
                    'VschedAllocationErrorFilter refused 2 of 4 hosts',
                    'unmeasured: backend deadline was not measured',
                    'inaccurate: backend deadline falls short by 90 %',
                ),
                (
                    'VschedIoOverheadFilter refused 1 of 2 hosts',
                    'expensive: its I/O would cost',
                ),
            ),
            strict=True,
        ):
            self.assertIn(spec.instance_uuid, line)
            for word in words:
                self.assertIn(word, line)

    def test_invalid_specs_below_microversion_2_86(self):
        self.set_known(fakes.host())
        spec = nova_case.request(cpu_runtime_us='5000', cpu_period_us='400')
        self.assertEqual([], self.names([nova_case.state()], spec))
        self.assertIn(
            'vsched:cpu_runtime_us: 5000 is more than the period of 400',
            self.log.output,
        )

    def test_several_instances_of_one_request(self):
        """As nova-scheduler does it without placement."""
        self.set_known(
            fakes.host('node1'), fakes.host('node2', 2, admitted_mcpu=1_000)
        )
        spec = nova_case.request(2, cpu_runtime_us='8000')
        states = [
            nova_case.state('node1', num_instances=7),
            nova_case.state('node2'),
        ]
        chosen = []
        for index in range(5):
            states = self.filtered(states, spec, index)
            if not states:
                break
            states[0].consume_from_request(spec)
            chosen.append(states[0].host)
        self.assertEqual(['node1', 'node1', 'node2'], chosen)

    def test_a_rebuild_stays_where_it_is(self):
        self.set_known(fakes.host(admitted_mcpu=1_900))
        spec = nova_case.request(cpu_runtime_us='5000')
        self.assertEqual([], self.names([nova_case.state()], spec))
        spec.scheduler_hints = {'_nova_check_type': ['rebuild']}
        self.assertEqual(['node1'], self.names([nova_case.state()], spec))

    def test_one_host_by_itself(self):
        self.set_known(
            fakes.host('node1'), fakes.host('node2', 2, admitted_mcpu=1_900)
        )
        spec = nova_case.request(cpu_runtime_us='5000')
        one = filters.VschedReservationFilter()
        self.assertTrue(one.host_passes(nova_case.state('node1'), spec))
        self.assertFalse(one.host_passes(nova_case.state('node2'), spec))

    def test_the_service_was_never_reached(self):
        spec = nova_case.request(
            cpu_runtime_us='5000', max_alloc_error_pct='2'
        )
        states = [nova_case.state()]
        self.assertEqual(['node1'], self.names(states, spec))
        self.assertIn(
            'VschedReservationFilter passes all 1 hosts', self.log.output
        )
        nova_conf.CONF.set_override('allocation_error_stale', 'fail', 'vsched')
        self.addCleanup(
            nova_conf.CONF.clear_override, 'allocation_error_stale', 'vsched'
        )
        self.assertEqual([], self.names(states, spec))
        self.assertIn('stale=1 (node1: ', self.log.output)
