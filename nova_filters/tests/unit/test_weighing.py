# SPDX-License-Identifier: Apache-2.0

"""How good hosts are."""

from unittest import mock

from oslotest import base

from nova_filters import flavor_request
from nova_filters import hosts
from nova_filters.tests import fakes
from nova_filters import weighing
from vsched_lib.model import interference

REQUEST = flavor_request.parse(
    {'vsched:cpu_runtime_us': '5000', 'vsched:net_rx_pps': '10000'}, 1
)


def host(**changes):
    """What is known of one host."""
    return hosts.NOTHING.after(
        fakes.answer(fakes.host(**changes)), 'a'
    ).by_name['node1']


class Instance:
    """What is used of Nova's."""

    def __init__(self, workload_class=None, loaded=True):
        specs = (
            {}
            if workload_class is None
            else {'vsched:workload_class': workload_class}
        )
        self.flavor = mock.Mock(extra_specs=specs)
        self.loaded = loaded

    def obj_attr_is_set(self, name):
        return self.loaded


class TestWeighing(base.BaseTestCase):
    """One host after the other."""

    def test_headroom(self):
        state = fakes.State()
        empty = weighing.headroom(REQUEST, host(), state)
        self.assertEqual((1_900 - 250) / 1_900, empty)
        self.assertGreater(
            empty, weighing.headroom(REQUEST, host(admitted_mcpu=1), state)
        )
        state.num_instances += 1
        self.assertEqual(
            (1_900 - 500) / 1_900, weighing.headroom(REQUEST, host(), state)
        )
        self.assertEqual(
            0.0, weighing.headroom(REQUEST, host(capacity_mcpu=0), state)
        )

    def test_allocation_error(self):
        found = [
            weighing.allocation_error(
                REQUEST,
                host(certificates=(fakes.certificate(lower_ppm),)),
                fakes.State(),
            )
            for lower_ppm in (-500_000, -1_000, 1_000, None)
        ]
        self.assertEqual([-500_000, -1_000, 0, None], found)

    def test_io_overhead(self):
        found = [
            weighing.io_overhead(
                REQUEST, host(prices_ns=prices_ns), fakes.State()
            )
            for prices_ns in ({'net_rx': 2e4}, {'net_rx': 1e4}, None)
        ]
        self.assertEqual([-200, -100, None], found)

    def test_neighbours(self):
        known = weighing.Neighbours()
        instances = {
            'a': Instance('web'),
            'b': Instance('web'),
            'c': Instance('disk'),
            'd': Instance(),
            'e': Instance('web', loaded=False),
        }
        for _ in range(2):
            self.assertEqual({'web': 2, 'disk': 1}, known.count(instances))
            self.assertEqual(
                {'web': 4, 'disk': 1}, known.count(instances, 'web', 2)
            )
        # What was not there the first time may be later.
        instances['e'].loaded = True
        self.assertEqual({'web': 3, 'disk': 1}, known.count(instances))
        with mock.patch.object(weighing, 'MAX_INSTANCES', 2):
            self.assertEqual(
                {'web': 3, 'disk': 1},
                known.count(
                    {
                        str(number): one
                        for number, one in enumerate(instances.values())
                    }
                ),
            )
            self.assertLessEqual(len(known._classes), 2)

    def test_disturbance(self):
        found = weighing.disturbance(
            'web',
            ({}, {'disk': 1}, {'compute': 1}, {'compute': 2}),
            interference.Interference(),
        )
        self.assertEqual(sorted(found, reverse=True), found)
        self.assertEqual(4, len(set(found)))
