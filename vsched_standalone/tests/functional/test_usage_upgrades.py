# SPDX-License-Identifier: Apache-2.0

"""Usage of two releases, in one database.

The earlier one is the last commit before executions. Its collector and its
REST service run while the tables are those of this release.
"""

import json

from vsched_api.operations import rollups
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_standalone.tests import releases

#: A minute and an hour end.
HOUR = base.NOW // 3600 * 3600.0

#: Stores a report of that release, if it is given one, adds up what is
#: stored, and prints the usage as its REST service shows it.
_OLD_COLLECTOR = """
import json, sys
from vsched_api.collector import endpoint
from vsched_api.operations import rollups
from vsched_api.operations import usage
from vsched_api.tests import databases
url, report = sys.argv[1:]
conf = databases.configuration(url)
collector = endpoint.Collector(conf)
if json.loads(report):
    collector.report({}, json.loads(report))
rollups.fold(collector.database, 100)
print(json.dumps([
    [one.at, one.guest_us] for one in usage.page(collector.database, 100)]
    + [[one.at, one.samples, one.guest_us] for one in usage.buckets(
        collector.database, usage.Resolution.MINUTE, 100)]))
collector.database.dispose()
"""


class UsageUpgrades:
    """The tests, on a database with the tables of this release."""

    def setUp(self):
        super().setUp()
        self.now = HOUR + 3600
        self.old = self.useFixture(
            releases.Release(releases.BEFORE_EXECUTIONS)
        )
        (self.instance,) = base.uuids(1)
        self.reporter = self.agent()
        self.reporter.first(self.instance)

    def report(self, second):
        self.reporter.send(
            listed=False,
            usage=[
                base.sample(
                    self.instance,
                    HOUR + second,
                    wakeups=5,
                    executions=(7,) * 7,
                )
            ],
        )

    def old_collector(self, report=None):
        return json.loads(
            self.old.run(
                _OLD_COLLECTOR,
                self.conf.database.connection,
                json.dumps(report),
            ).splitlines()[-1]
        )

    def executions(self):
        rollups.fold(self.database, 100)
        return (
            [one.executions for one in usage.page(self.database, 100)],
            [
                (one.samples, one.executions)
                for one in usage.buckets(
                    self.database, usage.Resolution.MINUTE, 100
                )
            ],
        )

    def test_an_old_collector_reads_what_a_new_one_stored(self):
        self.report(1)
        rollups.fold(self.database, 100)
        self.report(2)
        self.report(61)
        self.assertEqual(
            [
                [HOUR + 1, 600_000],
                [HOUR + 2, 600_000],
                [HOUR + 61, 600_000],
                [HOUR + 60, 2, 1_200_000],
                [HOUR + 120, 1, 600_000],
            ],
            self.old_collector(),
        )
        # It counted no executions in the sums that it changed.
        self.assertEqual(
            ([7, 7, 7], [(2, None), (1, None)]), self.executions()
        )
        self.report(121)
        self.assertEqual(
            ([7] * 4, [(2, None), (1, None), (1, 7)]), self.executions()
        )

    def test_a_new_collector_reads_what_an_old_one_stored(self):
        self.report(1)
        self.executions()
        self.old_collector(
            {
                'host': 'node-old',
                'batch': 1,
                'at': HOUR + 1,
                'usage': [
                    base.sample(
                        self.instance, HOUR + 1, executions=(7,) * 7
                    ).to_dict()
                ],
            }
        )
        # Its clock is the machine's, so the order is not known.
        samples, sums = self.executions()
        self.assertCountEqual([7, None], samples)
        self.assertCountEqual([(1, 7), (1, None)], sums)


class TestUsageUpgradesOnPostgreSQL(UsageUpgrades, base.TestCase):
    """The tests on PostgreSQL."""

    kind = databases.PostgreSQL


class TestUsageUpgradesOnMariaDB(UsageUpgrades, base.TestCase):
    """The tests on MariaDB."""

    kind = databases.MariaDB
