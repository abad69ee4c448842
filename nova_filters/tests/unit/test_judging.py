# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Which hosts stay, and why the others do not."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from nova_filters import asking
from nova_filters import cache
from nova_filters import hosts
from nova_filters import judging
from nova_filters.tests import told

RESERVATION = judging.Rules(judging.reservation, True, False)
ERROR = judging.Rules(judging.allocation_error, True, False)
OVERHEAD = judging.Rules(judging.io_overhead, True, True)


def question(**specs):
    """A quarter of a CPU, and more."""
    return asking.question({
        'vsched:cpu_runtime_us': '5000', **{
            'vsched:' + key: text for key, text in specs.items()}}, 1)


class TestSift(base.BaseTestCase):
    """With made-up hosts and states."""

    def sift(self, rules, *known, asked=None, stale=False, states=None,
             **more):
        made = hosts.NOTHING.after(told.answer(*known, **more), 'a')
        passed, self.refusals = judging.sift(
            states or [told.State(one.name) for one in known],
            asked or question(), cache.Known(made, 0.0), stale, rules)
        return [one.host for one in passed]

    def test_room(self):
        self.assertEqual(['b'], self.sift(
            RESERVATION, told.host('a', admitted_mcpu=1_651),
            told.host('b', admitted_mcpu=1_650)))
        self.assertEqual(
            'capacity=1 (a: 250 mcpu needed, 249 of 1900 mcpu free)',
            str(self.refusals))

    def test_each_filter_asks_its_own_question(self):
        bad = told.host(
            'a', admitted_mcpu=1_900, prices_ns={'net_rx': 1e6},
            certificates=(told.certificate(-900_000),))
        asked = question(max_alloc_error_pct='2', io_charging='charge',
                         net_rx_pps='1000')
        for rules, cause in ((RESERVATION, 'capacity'), (ERROR, 'error'),
                             (OVERHEAD, 'overhead')):
            self.assertEqual([], self.sift(rules, bad, asked=asked))
            self.assertIn(cause + '=1 (a: ', str(self.refusals))
        self.assertEqual([], self.sift(
            RESERVATION, told.host('a', backends=('cfs',))))
        self.assertIn('backend=1', str(self.refusals))

    def test_what_is_not_known_is_for_the_policy(self):
        asked = question(max_alloc_error_pct='2', io_charging='charge',
                         net_rx_pps='1000')
        for rules in (ERROR, OVERHEAD):
            for missing in (False, True):
                self.assertEqual(
                    ['a'] if missing else [], self.sift(
                        rules._replace(missing=missing), told.host('a'),
                        asked=asked))
        # What a host has no backend for is known well enough.
        self.assertEqual([], self.sift(
            RESERVATION._replace(missing=True),
            told.host('a', backends=())))

    def test_hosts_without_an_agent(self):
        for missing in (False, True):
            self.assertEqual(['a', 'b'] if missing else ['a'], self.sift(
                RESERVATION._replace(missing=missing), told.host('a'),
                states=[told.State('a'), told.State('b')]))
        self.assertEqual(
            ['x'], self.sift(RESERVATION, told.host('a.example.org'),
                             states=[told.State('x', 'a.example.org')]))

    def test_agents_that_do_not_report(self):
        full = told.host('a', admitted_mcpu=1_900)
        for stale in (False, True):
            self.assertEqual(['a'] if stale else [], self.sift(
                RESERVATION._replace(stale=stale), full, down=('a',)))

    def test_a_service_that_is_away(self):
        full = told.host('a', admitted_mcpu=1_900)
        for stale in (False, True):
            self.assertEqual(['a'] if stale else [], self.sift(
                RESERVATION._replace(stale=stale), full, stale=True))
        self.sift(RESERVATION._replace(stale=False), full, stale=True)
        self.assertIn('stale=1', str(self.refusals))

    def test_the_log_names_some_and_counts_all(self):
        self.sift(RESERVATION, *(told.host(name, admitted_mcpu=1_900)
                                 for name in 'abcdefg'))
        text = str(self.refusals)
        self.assertIn('capacity=7 (a: ', text)
        self.assertTrue(text.endswith(', ...)'))
        self.assertEqual(judging.NAMED, text.count('mcpu needed'))

    @given(st.lists(st.integers(0, 1_900), min_size=1, max_size=4),
           st.integers(1, 40), st.randoms())
    def test_a_request_never_gets_more_than_there_is(
            self, admitted_mcpu, instances, draw):
        """As nova-scheduler does it: sift, choose, count, sift again."""
        known = {str(number): told.host(str(number), admitted_mcpu=mcpu)
                 for number, mcpu in enumerate(admitted_mcpu)}
        made = cache.Known(hosts.NOTHING.after(
            told.answer(*known.values()), 'a'), 0.0)
        states = [told.State(name) for name in known]
        given_to = dict.fromkeys(known, 0)
        for _ in range(instances):
            states, _ = judging.sift(
                states, question(), made, False, RESERVATION)
            if not states:
                break
            chosen = draw.choice(states)
            chosen.num_instances += 1
            given_to[chosen.host] += 1
        for name, host in known.items():
            self.assertLessEqual(
                host.admitted_mcpu + 250 * given_to[name], 1_900)
        # And no less: a request that fails has used up every host.
        if sum(given_to.values()) < instances:
            for name, host in known.items():
                self.assertGreater(
                    host.admitted_mcpu + 250 * (given_to[name] + 1), 1_900)
