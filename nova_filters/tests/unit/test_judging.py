# SPDX-License-Identifier: Apache-2.0

"""Which hosts stay, and why the others do not."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from nova_filters import cache
from nova_filters import flavor_request
from nova_filters import hosts
from nova_filters import judging
from nova_filters.tests import fakes

RESERVATION = judging.Rules(judging.reservation, True, False)
ERROR = judging.Rules(judging.allocation_error, True, False)
OVERHEAD = judging.Rules(judging.io_overhead, True, True)


def request(claimed_mcpu=0, **specs):
    """A quarter of a CPU, and more.

    :param claimed_mcpu: in placement.
    """
    return flavor_request.parse(
        {
            'vsched:cpu_runtime_us': '5000',
            'resources_VSCHED:CUSTOM_VSCHED_MCPU': str(claimed_mcpu),
            **{'vsched:' + key: text for key, text in specs.items()},
        },
        1,
    )


class TestFilterHosts(base.BaseTestCase):
    """With made-up hosts and states."""

    def filter_hosts(
        self, rules, *known, asked=None, stale=False, states=None, **more
    ):
        made = hosts.NOTHING.after(fakes.answer(*known, **more), 'a')
        passed, self.refusals = judging.filter_hosts(
            states or [fakes.State(one.name) for one in known],
            asked or request(),
            cache.Known(made, 0.0),
            stale,
            rules,
        )
        return [one.host for one in passed]

    def test_room(self):
        self.assertEqual(
            ['b'],
            self.filter_hosts(
                RESERVATION,
                fakes.host('a', admitted_mcpu=1_651),
                fakes.host('b', admitted_mcpu=1_650),
            ),
        )
        self.assertEqual(
            'capacity=1 (a: 250 mcpu needed, 249 of 1900 mcpu free)',
            str(self.refusals),
        )

    def test_room_that_placement_decides_about(self):
        """A claim that covers what the host needs: the copy may be old."""
        full = fakes.host('a', admitted_mcpu=1_900)
        for claimed_mcpu, names in ((250, ['a']), (300, ['a']), (249, [])):
            self.assertEqual(
                names,
                self.filter_hosts(
                    RESERVATION, full, asked=request(claimed_mcpu)
                ),
            )
        # A margin for this host's errors is more than what is claimed.
        erring = fakes.host(
            'a',
            admitted_mcpu=1_900,
            certificates=(fakes.certificate(-50_000),),
        )
        self.assertEqual(
            [],
            self.filter_hosts(
                RESERVATION,
                erring,
                asked=request(250, max_alloc_error_pct='2'),
            ),
        )
        self.assertEqual(
            ['a'],
            self.filter_hosts(
                RESERVATION,
                erring,
                asked=request(300, max_alloc_error_pct='2'),
            ),
        )
        # Placement was not asked for this request.
        self.assertEqual(
            [],
            self.filter_hosts(
                RESERVATION,
                full,
                asked=request(250),
                states=[fakes.State('a', allocation_candidates=())],
            ),
        )

    def test_fitness_is_never_placements(self):
        asked = request(250, backend='deadline')
        self.assertEqual(
            [],
            self.filter_hosts(
                RESERVATION, fakes.host('a', backends=('cfs',)), asked=asked
            ),
        )
        self.assertIn('backend=1', str(self.refusals))
        self.assertEqual(
            [],
            self.filter_hosts(
                RESERVATION, fakes.host('a', capacity_mcpu=240), asked=asked
            ),
        )
        self.assertIn('250 mcpu needed, 240 of 240', str(self.refusals))
        self.assertEqual(
            [],
            self.filter_hosts(
                ERROR,
                fakes.host('a', certificates=(fakes.certificate(-900_000),)),
                asked=request(250, max_alloc_error_pct='2'),
            ),
        )

    def test_each_filter_has_its_own_rule(self):
        bad = fakes.host(
            'a',
            admitted_mcpu=1_900,
            prices_ns={'net_rx': 1e6},
            certificates=(fakes.certificate(-900_000),),
        )
        asked = request(
            max_alloc_error_pct='2', io_charging='charge', net_rx_pps='1000'
        )
        for rules, cause in (
            (RESERVATION, 'capacity'),
            (ERROR, 'error'),
            (OVERHEAD, 'overhead'),
        ):
            self.assertEqual([], self.filter_hosts(rules, bad, asked=asked))
            self.assertIn(cause + '=1 (a: ', str(self.refusals))
        self.assertEqual(
            [],
            self.filter_hosts(RESERVATION, fakes.host('a', backends=('cfs',))),
        )
        self.assertIn('backend=1', str(self.refusals))

    def test_what_is_not_known_is_for_the_policy(self):
        asked = request(
            max_alloc_error_pct='2', io_charging='charge', net_rx_pps='1000'
        )
        for rules in (ERROR, OVERHEAD):
            for missing in (False, True):
                self.assertEqual(
                    ['a'] if missing else [],
                    self.filter_hosts(
                        rules._replace(missing=missing),
                        fakes.host('a'),
                        asked=asked,
                    ),
                )
        # What a host has no backend for is known well enough.
        self.assertEqual(
            [],
            self.filter_hosts(
                RESERVATION._replace(missing=True),
                fakes.host('a', backends=()),
            ),
        )

    def test_hosts_without_an_agent(self):
        for missing in (False, True):
            self.assertEqual(
                ['a', 'b'] if missing else ['a'],
                self.filter_hosts(
                    RESERVATION._replace(missing=missing),
                    fakes.host('a'),
                    states=[fakes.State('a'), fakes.State('b')],
                ),
            )
        self.assertEqual(
            ['x'],
            self.filter_hosts(
                RESERVATION,
                fakes.host('a.example.org'),
                states=[fakes.State('x', 'a.example.org')],
            ),
        )

    def test_agents_that_do_not_report(self):
        full = fakes.host('a', admitted_mcpu=1_900)
        for stale in (False, True):
            self.assertEqual(
                ['a'] if stale else [],
                self.filter_hosts(
                    RESERVATION._replace(stale=stale), full, down=('a',)
                ),
            )

    def test_a_service_that_is_away(self):
        full = fakes.host('a', admitted_mcpu=1_900)
        for stale in (False, True):
            self.assertEqual(
                ['a'] if stale else [],
                self.filter_hosts(
                    RESERVATION._replace(stale=stale), full, stale=True
                ),
            )
        self.filter_hosts(RESERVATION._replace(stale=False), full, stale=True)
        self.assertIn('stale=1', str(self.refusals))

    def test_the_log_names_some_and_counts_all(self):
        self.filter_hosts(
            RESERVATION,
            *(fakes.host(name, admitted_mcpu=1_900) for name in 'abcdefg'),
        )
        text = str(self.refusals)
        self.assertIn('capacity=7 (a: ', text)
        self.assertTrue(text.endswith(', ...)'))
        self.assertEqual(judging.NAMED, text.count('mcpu needed'))

    @given(
        st.lists(st.integers(0, 1_900), min_size=1, max_size=4),
        st.integers(1, 40),
        st.randoms(),
    )
    def test_a_request_never_gets_more_than_there_is(
        self, admitted_mcpu, instances, draw
    ):
        """As nova-scheduler does it: filter, choose, count, filter again."""
        known = {
            str(number): fakes.host(str(number), admitted_mcpu=mcpu)
            for number, mcpu in enumerate(admitted_mcpu)
        }
        made = cache.Known(
            hosts.NOTHING.after(fakes.answer(*known.values()), 'a'), 0.0
        )
        states = [fakes.State(name) for name in known]
        given_to = dict.fromkeys(known, 0)
        for _ in range(instances):
            states, _ = judging.filter_hosts(
                states, request(), made, False, RESERVATION
            )
            if not states:
                break
            chosen = draw.choice(states)
            chosen.num_instances += 1
            given_to[chosen.host] += 1
        for name, host in known.items():
            self.assertLessEqual(
                host.admitted_mcpu + 250 * given_to[name], 1_900
            )
        # And no less: a request that fails has used up every host.
        if sum(given_to.values()) < instances:
            for name, host in known.items():
                self.assertGreater(
                    host.admitted_mcpu + 250 * (given_to[name] + 1), 1_900
                )
