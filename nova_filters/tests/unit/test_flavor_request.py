# SPDX-License-Identifier: Apache-2.0

"""What a flavor asks of hosts."""

from oslotest import base

from nova_filters import flavor_request
from vsched_lib.model import fit
from vsched_lib.model import reservation


class TestFlavorRequest(base.BaseTestCase):
    """What becomes of extra specs."""

    def test_none_of_our_business(self):
        for specs in (None, {}, {'hw:cpu_policy': 'shared'}):
            self.assertIsNone(flavor_request.parse(specs, 2))

    def test_same_flavor_is_the_same_request(self):
        specs = {'vsched:cpu_runtime_us': '5000'}
        found = flavor_request.parse(specs, 2)
        self.assertEqual(
            fit.Ask(2, reservation.Reservation(5_000, 20_000)), found.ask
        )
        self.assertIs(
            found,
            flavor_request.parse({'hw:mem_page_size': 'large', **specs}, 2),
        )
        self.assertIsNot(found, flavor_request.parse(specs, 3))

    def test_the_claim(self):
        specs = {'vsched:cpu_runtime_us': '5000'}
        name = 'resources_VSCHED:CUSTOM_VSCHED_MCPU'
        self.assertEqual(0, flavor_request.parse(specs, 1).claimed_mcpu)
        for text, claimed_mcpu in (
            ('250', 250),
            ('0', 0),
            ('many', 0),
            ('-1', 0),
            ('2_0', 0),
            ('9' * 10, 0),
            ('', 0),
        ):
            self.assertEqual(
                claimed_mcpu,
                flavor_request.parse({**specs, name: text}, 1).claimed_mcpu,
                text,
            )

    def test_what_nova_does_not_see(self):
        for specs, words in (
            (
                {
                    'vsched:cpu_runtime_us': '5000',
                    'vsched:cpu_period_us': '1000',
                },
                'more than the period',
            ),
            ({'vsched:cpu_period_us': '1000'}, 'no meaning without'),
            ({'vsched:cpu_runtime_us': 'five'}, 'not accepted'),
            ({'vsched:cpu': '1'}, 'is not known'),
        ):
            for _ in range(2):
                problem = self.assertRaises(
                    flavor_request.InvalidRequest,
                    flavor_request.parse,
                    specs,
                    1,
                )
                self.assertIn(words, str(problem))
