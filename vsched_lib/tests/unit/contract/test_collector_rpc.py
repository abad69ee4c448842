# SPDX-License-Identifier: Apache-2.0

"""Which version of its interface a collector is asked for."""

import dataclasses
import inspect

from oslotest import base

from vsched_lib.contract import collector_rpc
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.tests import rpc_suite

UUID = '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f'
NEWEST, BEFORE, OLDEST = collector_rpc.VERSIONS


class OldCollector(rpc_suite.Collector):
    """One of the release before."""

    target = rpc.target(BEFORE)


class OldestCollector(rpc_suite.Collector):
    """One of the release before that."""

    target = rpc.target(OLDEST)


class Client(collector_rpc.CollectorClient):
    """Remembers the versions that it has asked for."""

    def __init__(self, transport, **more):
        super().__init__(transport, rpc_suite.PATIENCE_S, **more)
        self.asked = []

    def _call_version(self, version, method, arguments):
        self.asked.append(version)
        self.sent = arguments
        return super()._call_version(version, method, arguments)


class TestVersions(rpc_suite.OnBus, base.BaseTestCase):
    """Collectors and agents of two releases."""

    url = 'fake://'

    def setUp(self):
        super().setUp()
        self.now_s = 0.0

    def use(self, collector):
        """Replace the collector that is there."""
        if hasattr(self, 'running'):
            self.running.stop()
            self.running.wait()
        self.running = self.serve(collector_rpc.TOPIC, 'collector', collector)
        return collector

    def make(self, **more):
        return Client(self.transport, clock=lambda: self.now_s, **more)

    def report(self, client, number):
        client.asked.clear()
        client.report(rpc_suite.report(number))
        return client.asked

    def test_the_newest_of_both(self):
        self.use(rpc_suite.Collector())
        client = self.make()
        for number in range(2):
            self.assertEqual([NEWEST], self.report(client, number))

    def test_an_older_collector_and_its_upgrade(self):
        old = self.use(OldCollector())
        client = self.make()
        self.assertEqual([NEWEST, BEFORE], self.report(client, 1))
        self.now_s = collector_rpc.OLD_VERSION_S - 1
        self.assertEqual([BEFORE], self.report(client, 2))
        self.assertEqual([1, 2], [one.batch for one in old.reports])
        new = self.use(rpc_suite.Collector())
        self.assertEqual([BEFORE], self.report(client, 3))
        self.now_s = collector_rpc.OLD_VERSION_S
        self.assertEqual([NEWEST], self.report(client, 4))
        self.assertEqual([3, 4], [one.batch for one in new.reports])

    def test_the_oldest_collector_and_its_upgrades(self):
        oldest = self.use(OldestCollector())
        client = self.make()
        self.assertEqual([NEWEST, BEFORE, OLDEST], self.report(client, 1))
        self.assertEqual([OLDEST], self.report(client, 2))
        self.assertEqual([1, 2], [one.batch for one in oldest.reports])
        self.use(OldCollector())
        self.now_s = collector_rpc.OLD_VERSION_S
        self.assertEqual([NEWEST, BEFORE], self.report(client, 3))
        self.assertEqual([BEFORE], self.report(client, 4))

    def test_samples_by_column_where_both_know_them(self):
        sample = messages.UsageSample(UUID, 5.0, 1_000_000, 7, 0)
        report = dataclasses.replace(rpc_suite.report(1), usage=(sample,))
        for collector, form in (
            (rpc_suite.Collector(), dict),
            (OldCollector(), list),
        ):
            self.use(collector)
            client = self.make()
            client.report(report)
            self.assertIs(form, type(client.sent['report']['usage']))
            self.assertEqual((sample,), collector.reports[0].usage)

    def test_a_version_that_is_pinned(self):
        new = self.use(rpc_suite.Collector())
        self.assertEqual([BEFORE], self.report(self.make(version=BEFORE), 1))
        self.assertEqual([1], [one.batch for one in new.reports])
        old = self.use(OldCollector())
        self.assertEqual([BEFORE], self.report(self.make(version=BEFORE), 2))
        client = self.make(version=NEWEST)
        self.assertRaises(
            rpc.UnsupportedVersion, client.report, rpc_suite.report(3)
        )
        self.assertEqual([NEWEST], client.asked)
        self.assertEqual([2], [one.batch for one in old.reports])


class TestEndpoint(base.BaseTestCase):
    def test_each_request_has_to_be_implemented(self):
        self.assertEqual(
            ['on_report', 'on_overrides', 'on_jobs'],
            [
                one.name
                for one in inspect.signature(
                    collector_rpc.CollectorEndpoint
                ).parameters.values()
                if one.default is one.empty
            ],
        )
