# SPDX-License-Identifier: Apache-2.0

"""What a host says of itself and cannot be."""

from vsched_api.operations import events
from vsched_api.operations import hosts
from vsched_api.tests import base
from vsched_lib.contract import errors


class TestPlausibility(base.TestCase):
    def setUp(self):
        super().setUp()
        self.conf.set_override('max_host_cpus', 8, 'collector')
        self.told = self.agent()

    def tell(self, **info):
        """What is believed, and what schedulers are told."""
        self.told.send(host_info=base.host_info(**info))
        shown = self.client().get('/v1/snapshot').json['hosts'][0]
        known = hosts.get(self.database, base.HOST, self.now, 30).info
        return known, shown

    def details(self):
        return [
            one.detail
            for one in events.page(self.database, 10)
            if one.code == errors.Code.HOST_IMPLAUSIBLE
        ]

    def test_what_can_be(self):
        known, _ = self.tell(cpus=8, capacity_mcpu=8_000)
        self.assertEqual(
            (8, 8_000, 600),
            (known.cpus, known.capacity_mcpu, known.admitted_mcpu),
        )
        self.assertEqual([], self.details())

    def test_more_than_its_cpus_have(self):
        known, shown = self.tell(cpus=2, capacity_mcpu=10_000_000)
        self.assertEqual(2_000, known.capacity_mcpu)
        self.assertNotIn('10000000', str(shown))
        (detail,) = self.details()
        self.assertIn('capacity_mcpu 10000000 is not 0 to 2000', detail)

    def test_more_cpus_than_any_host(self):
        known, _ = self.tell(cpus=60_000, capacity_mcpu=59_000_000)
        self.assertEqual((8, 8_000), (known.cpus, known.capacity_mcpu))
        self.assertIn('max_host_cpus is 8', self.details()[0])

    def test_less_than_nothing_is_held(self):
        # As would leave room for more than there is.
        known, _ = self.tell(admitted_mcpu=-1_000_000)
        self.assertEqual(0, known.admitted_mcpu)
        self.assertEqual(1, len(self.details()))

    def test_one_event_an_hour(self):
        for _ in range(5):
            self.tell(capacity_mcpu=10_000_000)
        self.assertEqual(1, len(self.details()))
