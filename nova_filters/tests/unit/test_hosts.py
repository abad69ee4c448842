# SPDX-License-Identifier: Apache-2.0

"""What is known of all hosts at one moment."""

import dataclasses
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from nova_filters import flavor_request
from nova_filters import hosts
from nova_filters.tests import fakes
from vsched_lib.contract import policy as policies
from vsched_lib.contract import snapshot
from vsched_lib.model import fit
from vsched_lib.model import interference

REQUEST = flavor_request.parse(
    {'vsched:cpu_runtime_us': '5000', 'vsched:max_alloc_error_pct': '2'}, 1
)


STRICT = policies.HostPolicy(0.8, 0, 500_000, False)


class TestHosts(base.BaseTestCase):
    """Full answers and changes."""

    def test_changes(self):
        first = hosts.NOTHING.after(
            fakes.answer(
                fakes.host(), fakes.host('node2', 2), fakes.host('node3', 3)
            ),
            'a',
        )
        second = first.after(
            fakes.answer(
                fakes.host('node2', 4, admitted_mcpu=500),
                full=False,
                removed=('node3', 'node9'),
                down=('node1',),
            ),
            'b',
        )
        self.assertEqual({'node1', 'node2'}, set(second.by_name))
        self.assertEqual(
            (4, 'b', {'node1'}), (second.version, second.tag, second.down)
        )
        self.assertEqual(1_400, second.by_name['node2'].free_mcpu)
        # The first one is as it was.
        self.assertEqual({'node1', 'node2', 'node3'}, set(first.by_name))
        self.assertEqual(1_900, first.by_name['node2'].free_mcpu)

    def test_a_full_answer_replaces_all(self):
        first = hosts.NOTHING.after(fakes.answer(fakes.host()), 'a')
        self.assertEqual(
            {'node2'},
            set(
                first.after(fakes.answer(fakes.host('node2', 2)), 'b').by_name
            ),
        )

    def test_what_a_flavor_takes_is_found_out_once(self):
        known = hosts.NOTHING.after(fakes.answer(fakes.host()), 'a')
        with mock.patch.object(
            fit.Asking, 'need', autospec=True, side_effect=fit.Asking.need
        ) as need:
            for version in range(2, 5):
                known.by_name['node1'].need(REQUEST)
                known = known.after(
                    fakes.answer(
                        fakes.host(
                            version=version, admitted_mcpu=version * 100
                        ),
                        full=False,
                    ),
                    'b',
                )
            self.assertEqual(1, need.call_count)
            # Other measurements, another size or another policy: computed
            # with the answer, not by the next request.
            for change in (
                {'certificates': (fakes.certificate(0),)},
                {'capacity_mcpu': 100},
                {'policy': STRICT},
            ):
                need.reset_mock()
                known = known.after(
                    fakes.answer(fakes.host(version=9, **change), full=False),
                    'c',
                )
                self.assertEqual(1, need.call_count)
                host = known.by_name['node1']
                self.assertEqual(
                    fit.Asking(REQUEST.ask).need(host.model),
                    host.need(REQUEST),
                )
                self.assertEqual(2, need.call_count)

    def test_a_host_goes_by_what_its_agent_goes_by(self):
        hurt = (fakes.certificate(-50_000),)
        known = hosts.NOTHING.after(
            fakes.answer(
                fakes.host(certificates=hurt),
                fakes.host('node2', 2, certificates=hurt, policy=STRICT),
            ),
            'a',
        )
        self.assertEqual(
            [True, False],
            [
                host.need(REQUEST).refusal is None
                for host in known.by_name.values()
            ],
        )
        mild = dataclasses.replace(STRICT, max_margin_ppm=250_000)
        later = known.after(
            fakes.answer(
                fakes.host('node2', 5, certificates=hurt, policy=mild),
                full=False,
            ),
            'c',
        )
        self.assertIsNone(later.by_name['node2'].need(REQUEST).refusal)

    def test_what_is_remembered_is_bounded(self):
        host = hosts.NOTHING.after(fakes.answer(fakes.host()), 'a').by_name[
            'node1'
        ]
        with mock.patch.object(hosts, 'MAX_NEEDS', 4):
            for vcpus in range(1, 20):
                self.assertEqual(
                    250 * vcpus,
                    host.need(
                        flavor_request.parse(
                            {'vsched:cpu_runtime_us': '5000'}, vcpus
                        )
                    ).demand_mcpu,
                )
                self.assertLessEqual(len(host._needs), 4)

    def test_one_host_that_cannot_be_read(self):
        bad = fakes.host('node2', 2, prices_ns={'net_rx': -1})
        known = hosts.NOTHING.after(fakes.answer(fakes.host(), bad), 'a')
        self.assertEqual({'node1'}, set(known.by_name))

    def test_every_answer_has_what_neighbours_cost(self):
        first = hosts.NOTHING.after(fakes.answer(), 'a')
        self.assertEqual(interference.Interference(), first.neighbours)
        second = first.after(
            fakes.answer(
                full=False,
                slowdowns=(
                    snapshot.Slowdown('web', 'compute', 2.0, 50.0),
                    snapshot.Slowdown('disk', 'disk', 0.25, 3.0),
                ),
            ),
            'b',
        )
        self.assertEqual(
            [2.0, 0.25, interference.MUCH],
            [
                second.neighbours.slowdown(victim, {neighbour: 1})
                for victim, neighbour in (
                    ('web', 'compute'),
                    ('disk', 'disk'),
                    ('transactional', 'compute'),
                )
            ],
        )

    @given(
        st.lists(
            st.tuples(st.sampled_from('abc'), st.integers(0, 9)), max_size=12
        ),
        st.integers(0, 12),
    )
    def test_changes_add_up_to_the_whole(self, changes, split):
        reported_hosts = [
            fakes.host(name, number + 1, admitted_mcpu=mcpu)
            for number, (name, mcpu) in enumerate(changes)
        ]
        whole = hosts.NOTHING.after(fakes.answer(*reported_hosts), 'a')
        parts = hosts.NOTHING.after(
            fakes.answer(*reported_hosts[:split]), 'a'
        ).after(fakes.answer(*reported_hosts[split:], full=False), 'b')
        self.assertEqual(
            {name: host.reported for name, host in whole.by_name.items()},
            {name: host.reported for name, host in parts.by_name.items()},
        )
