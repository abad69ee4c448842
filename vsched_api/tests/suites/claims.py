# SPDX-License-Identifier: Apache-2.0

"""What flavors have to claim: on every database alike."""

from vsched_api.tests import base
from vsched_api.tests.suites import evaluations
from vsched_lib.contract import errors
from vsched_lib.tests import overhead_profiles

CLAIM = 'resources_VSCHED:CUSTOM_VSCHED_MCPU'
DEADLINE = 'trait_VSCHED:CUSTOM_VSCHED_BACKEND_DEADLINE'
IO = {
    **evaluations.QUARTER,
    'vsched:io_charging': 'overprovision',
    'vsched:net_rx_pps': '2000',
}


class Claims(evaluations.Asking):
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def claim(self, specs, vcpus=2, status=200, **more):
        answer = self.http.post(
            '/v1/flavors/claims',
            json={'extra_specs': specs, 'vcpus': vcpus, **more},
        )
        self.assertEqual(status, answer.status_code, answer.text)
        return answer.json['claim' if status == 200 else 'errors']

    def test_a_claim_is_added(self):
        specs = {
            'vsched:cpu_runtime_us': '6001',
            'vsched:backend': 'deadline',
            'hw:mem_page_size': 'large',
            'aggregate_instance_extra_specs:rack': 'x' * 255,
        }
        found = self.claim(specs)
        self.assertEqual(
            {
                'agrees': False,
                'extra_specs': {
                    **specs,
                    CLAIM: '601',
                    DEADLINE: 'required',
                    'group_policy': 'none',
                },
                'runtime_us': 6001,
                'period_us': 20_000,
                'mode': 'capped',
                'backend': 'deadline',
                'claim_mcpu': 601,
                'guest_mcpu': 601,
                'overhead_mcpu': 0,
                'notes': [],
            },
            found,
        )
        again = self.claim(found['extra_specs'])
        self.assertEqual({**found, 'agrees': True}, again)

    def test_a_claim_is_corrected(self):
        found = self.claim(
            {
                **evaluations.QUARTER,
                CLAIM: '300',
                DEADLINE: 'required',
                'group_policy': 'isolate',
            }
        )
        self.assertFalse(found['agrees'])
        self.assertEqual(
            {**evaluations.QUARTER, CLAIM: '500', 'group_policy': 'isolate'},
            found['extra_specs'],
        )

    def test_a_claim_without_a_reservation(self):
        found = self.claim({CLAIM: '300', 'group_policy': 'none'})
        self.assertEqual(
            (False, {}, None, None, 0),
            tuple(
                found[name]
                for name in (
                    'agrees',
                    'extra_specs',
                    'runtime_us',
                    'backend',
                    'claim_mcpu',
                )
            ),
        )
        self.assertTrue(self.claim({})['agrees'])

    def test_the_cost_of_io(self):
        found = self.claim(IO)
        self.assertEqual(
            (500, 0), (found['claim_mcpu'], found['overhead_mcpu'])
        )
        self.assertIn('no host has measured', found['notes'][0])
        self.agents['node1'].send(
            listed=False,
            overhead_profiles=(
                overhead_profiles.profile(
                    uuid=base.uuids(1)[0], kernel='6.1.0'
                ),
            ),
        )
        found = self.claim(IO)
        self.assertEqual([], found['notes'])
        self.assertGreater(found['overhead_mcpu'], 0)
        self.assertEqual(
            (500 + found['overhead_mcpu'], str(found['claim_mcpu'])),
            (found['claim_mcpu'], found['extra_specs'][CLAIM]),
        )
        # A quota claims nothing.
        found = self.claim({**IO, 'vsched:backend': 'cfs'})
        self.assertEqual(
            (0, 0, [], True),
            tuple(
                found[name]
                for name in ('claim_mcpu', 'overhead_mcpu', 'notes', 'agrees')
            ),
        )

    def test_a_bound_that_no_trait_shows(self):
        found = self.claim(
            {**evaluations.QUARTER, 'vsched:max_alloc_error_pct': '0.3'}
        )
        self.assertIn('max_alloc_error_pct 0.3 is below', found['notes'][0])

    def test_what_is_refused(self):
        for specs, more, code, words in (
            (
                {'vsched:cpu_runtime_us': '30000'},
                {},
                errors.Code.EXTRA_SPECS_INVALID,
                'more than the period',
            ),
            (
                {'vsched:cpu_runtime': '1'},
                {},
                errors.Code.EXTRA_SPECS_INVALID,
                'is not known',
            ),
            (
                {**evaluations.QUARTER, 'vsched:backend': 'magic'},
                {},
                errors.Code.EXTRA_SPECS_INVALID,
                'not accepted',
            ),
            ({'a': 'x' * 256}, {}, None, 'extra_specs.a'),
            ({}, {'vcpus': 1025}, None, 'vcpus'),
            ({}, {'flavor': 'm1'}, None, 'flavor'),
            (
                {'a%d' % number: '' for number in range(201)},
                {},
                None,
                'extra_specs',
            ),
        ):
            problem = self.claim(specs, status=400, **more)[0]
            self.assertIn(words, problem['detail'])
            self.assertEqual(
                code or errors.Code.BAD_REQUEST, problem['code'], words
            )
        answer = self.http.post('/v1/flavors/claims', json={'vcpus': 1})
        self.assertEqual(400, answer.status_code)
        self.assertIn('extra_specs', answer.json['errors'][0]['detail'])
