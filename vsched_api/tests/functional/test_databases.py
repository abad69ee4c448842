# SPDX-License-Identifier: Apache-2.0

"""The suites that pass on SQLite pass on servers too."""

from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_api.tests.suites import balloons
from vsched_api.tests.suites import claims
from vsched_api.tests.suites import concurrency
from vsched_api.tests.suites import evaluated_overrides
from vsched_api.tests.suites import evaluations
from vsched_api.tests.suites import exact_sums
from vsched_api.tests.suites import executions
from vsched_api.tests.suites import foreign_instances
from vsched_api.tests.suites import fuzzing
from vsched_api.tests.suites import gathering
from vsched_api.tests.suites import host_lives
from vsched_api.tests.suites import inspection
from vsched_api.tests.suites import instances
from vsched_api.tests.suites import jobs
from vsched_api.tests.suites import lists
from vsched_api.tests.suites import metrics
from vsched_api.tests.suites import migrations
from vsched_api.tests.suites import numbering
from vsched_api.tests.suites import overrides
from vsched_api.tests.suites import profiles
from vsched_api.tests.suites import report_groups
from vsched_api.tests.suites import reports
from vsched_api.tests.suites import reservations
from vsched_api.tests.suites import retention
from vsched_api.tests.suites import rollups
from vsched_api.tests.suites import servers
from vsched_api.tests.suites import slowdowns
from vsched_api.tests.suites import snapshot
from vsched_api.tests.suites import usage_totals
from vsched_api.tests.suites import verifications


class TestReportsOnPostgreSQL(reports.Reports, base.TestCase):
    """Storing reports."""

    kind = databases.PostgreSQL


class TestReportsOnMariaDB(reports.Reports, base.TestCase):
    """Storing reports."""

    kind = databases.MariaDB


class TestReservationsOnPostgreSQL(reservations.Reservations, base.TestCase):
    """Changing what instances are promised."""

    kind = databases.PostgreSQL


class TestReservationsOnMariaDB(reservations.Reservations, base.TestCase):
    """Changing what instances are promised."""

    kind = databases.MariaDB


class TestOverridesOnPostgreSQL(overrides.Overrides, base.TestCase):
    """How long overrides last."""

    kind = databases.PostgreSQL


class TestOverridesOnMariaDB(overrides.Overrides, base.TestCase):
    """How long overrides last."""

    kind = databases.MariaDB


class TestRetentionOnPostgreSQL(retention.Retention, base.TestCase):
    """Deleting what is too old."""

    kind = databases.PostgreSQL


class TestRetentionOnMariaDB(retention.Retention, base.TestCase):
    """Deleting what is too old."""

    kind = databases.MariaDB


class TestMetricsOnPostgreSQL(metrics.Metrics, base.TestCase):
    """What is read for metrics."""

    kind = databases.PostgreSQL


class TestMetricsOnMariaDB(metrics.Metrics, base.TestCase):
    """What is read for metrics."""

    kind = databases.MariaDB


class TestMigrationsOnPostgreSQL(migrations.Migrations, base.TestCase):
    """Creating, upgrading and removing the tables."""

    kind = databases.PostgreSQL


class TestMigrationsOnMariaDB(migrations.Migrations, base.TestCase):
    """Creating, upgrading and removing the tables."""

    kind = databases.MariaDB


class TestInspectionOnPostgreSQL(inspection.Inspection, base.TestCase):
    """Whatever passes inspection can be stored."""

    kind = databases.PostgreSQL


class TestInspectionOnMariaDB(inspection.Inspection, base.TestCase):
    """Whatever passes inspection can be stored."""

    kind = databases.MariaDB


class TestInstancesOnPostgreSQL(instances.Instances, base.TestCase):
    """What instances are known as."""

    kind = databases.PostgreSQL


class TestInstancesOnMariaDB(instances.Instances, base.TestCase):
    """What instances are known as."""

    kind = databases.MariaDB


class TestConcurrencyOnPostgreSQL(concurrency.Concurrency, base.TestCase):
    """Changes and reports at the same moment."""

    kind = databases.PostgreSQL


class TestConcurrencyOnMariaDB(concurrency.Concurrency, base.TestCase):
    """Changes and reports at the same moment."""

    kind = databases.MariaDB


class TestJobsOnPostgreSQL(jobs.Jobs, base.TestCase):
    """Ordering jobs and hearing of them."""

    kind = databases.PostgreSQL


class TestJobsOnMariaDB(jobs.Jobs, base.TestCase):
    """Ordering jobs and hearing of them."""

    kind = databases.MariaDB


class TestListsOnPostgreSQL(lists.Lists, base.TestCase):
    """Lists in an order of choice."""

    kind = databases.PostgreSQL


class TestListsOnMariaDB(lists.Lists, base.TestCase):
    """Lists in an order of choice."""

    kind = databases.MariaDB


class TestProfilesOnPostgreSQL(profiles.Profiles, base.TestCase):
    """Storing and reading error profiles."""

    kind = databases.PostgreSQL


class TestProfilesOnMariaDB(profiles.Profiles, base.TestCase):
    """Storing and reading error profiles."""

    kind = databases.MariaDB


class TestRollupsOnPostgreSQL(rollups.Rollups, base.TestCase):
    """Summing samples by minute and by hour."""

    kind = databases.PostgreSQL


class TestRollupsOnMariaDB(rollups.Rollups, base.TestCase):
    """Summing samples by minute and by hour."""

    kind = databases.MariaDB


class TestExactSumsOnPostgreSQL(exact_sums.ExactSums, base.TestCase):
    """Summing any samples exactly."""

    kind = databases.PostgreSQL


class TestExactSumsOnMariaDB(exact_sums.ExactSums, base.TestCase):
    """Summing any samples exactly."""

    kind = databases.MariaDB


class TestExecutionsOnPostgreSQL(executions.Executions, base.TestCase):
    """Executions in samples and sums."""

    kind = databases.PostgreSQL


class TestExecutionsOnMariaDB(executions.Executions, base.TestCase):
    """Executions in samples and sums."""

    kind = databases.MariaDB


class TestGroupsOnPostgreSQL(
    report_groups.Groups, report_groups.BusyHosts, base.TestCase
):
    """Reports that share transactions."""

    kind = databases.PostgreSQL


class TestGroupsOnMariaDB(
    report_groups.Groups, report_groups.BusyHosts, base.TestCase
):
    """Reports that share transactions."""

    kind = databases.MariaDB


class TestGatheringOnPostgreSQL(gathering.Gathering, base.TestCase):
    """Batches that share transactions."""

    kind = databases.PostgreSQL


class TestGatheringOnMariaDB(gathering.Gathering, base.TestCase):
    """Batches that share transactions."""

    kind = databases.MariaDB


class TestSnapshotOnPostgreSQL(snapshot.Snapshot, base.TestCase):
    """What schedulers are told of hosts."""

    kind = databases.PostgreSQL


class TestSnapshotOnMariaDB(snapshot.Snapshot, base.TestCase):
    """What schedulers are told of hosts."""

    kind = databases.MariaDB


class TestEvaluationsOnPostgreSQL(evaluations.Evaluations, base.TestCase):
    """Where instances would fit."""

    kind = databases.PostgreSQL


class TestEvaluationsOnMariaDB(evaluations.Evaluations, base.TestCase):
    """Where instances would fit."""

    kind = databases.MariaDB


class TestClaimsOnPostgreSQL(claims.Claims, base.TestCase):
    """What flavors have to claim."""

    kind = databases.PostgreSQL


class TestClaimsOnMariaDB(claims.Claims, base.TestCase):
    """What flavors have to claim."""

    kind = databases.MariaDB


class TestEvaluatedOverridesOnPostgreSQL(
    evaluated_overrides.EvaluatedOverrides, base.TestCase
):
    """Where instances with an override would fit."""

    kind = databases.PostgreSQL


class TestEvaluatedOverridesOnMariaDB(
    evaluated_overrides.EvaluatedOverrides, base.TestCase
):
    """Where instances with an override would fit."""

    kind = databases.MariaDB


class TestSlowdownsOnPostgreSQL(slowdowns.Slowdowns, base.TestCase):
    """Learning what neighbours cost each other."""

    kind = databases.PostgreSQL


class TestSlowdownsOnMariaDB(slowdowns.Slowdowns, base.TestCase):
    """Learning what neighbours cost each other."""

    kind = databases.MariaDB


class TestBalloonsOnPostgreSQL(balloons.Balloons, base.TestCase):
    """Balloons told and ordered of."""

    kind = databases.PostgreSQL


class TestBalloonsOnMariaDB(balloons.Balloons, base.TestCase):
    """Balloons told and ordered of."""

    kind = databases.MariaDB


class TestNumberingOnPostgreSQL(numbering.Numbering, base.TestCase):
    """Numbers of batches."""

    kind = databases.PostgreSQL


class TestNumberingOnMariaDB(numbering.Numbering, base.TestCase):
    """Numbers of batches."""

    kind = databases.MariaDB


class TestFuzzingOnPostgreSQL(fuzzing.Fuzzing, base.TestCase):
    """Requests made from routes and schemas."""

    kind = databases.PostgreSQL


class TestFuzzingOnMariaDB(fuzzing.Fuzzing, base.TestCase):
    """Requests made from routes and schemas."""

    kind = databases.MariaDB


class TestClocksOnPostgreSQL(host_lives.Clocks, base.TestCase):
    """Clocks of hosts that are wrong."""

    kind = databases.PostgreSQL


class TestClocksOnMariaDB(host_lives.Clocks, base.TestCase):
    """Clocks of hosts that are wrong."""

    kind = databases.MariaDB


class TestDeletionOnPostgreSQL(host_lives.Deletion, base.TestCase):
    """Deleting hosts."""

    kind = databases.PostgreSQL


class TestDeletionOnMariaDB(host_lives.Deletion, base.TestCase):
    """Deleting hosts."""

    kind = databases.MariaDB


class TestVerificationsOnPostgreSQL(
    verifications.Verifications, base.TestCase
):
    """Comparing reports with Nova and placement."""

    kind = databases.PostgreSQL


class TestVerificationsOnMariaDB(verifications.Verifications, base.TestCase):
    """Comparing reports with Nova and placement."""

    kind = databases.MariaDB


class TestForeignInstancesOnPostgreSQL(
    foreign_instances.ForeignInstances, base.TestCase
):
    """Comparing lists of instances with Nova's."""

    kind = databases.PostgreSQL


class TestForeignInstancesOnMariaDB(
    foreign_instances.ForeignInstances, base.TestCase
):
    """Comparing lists of instances with Nova's."""

    kind = databases.MariaDB


class TestServersOnPostgreSQL(servers.Servers, base.TestCase):
    """What is told of servers, and found by them."""

    kind = databases.PostgreSQL


class TestServersOnMariaDB(servers.Servers, base.TestCase):
    """What is told of servers, and found by them."""

    kind = databases.MariaDB


class TestUsageTotalsOnPostgreSQL(usage_totals.UsageTotals, base.TestCase):
    """What instances got in the newest part of the time."""

    kind = databases.PostgreSQL


class TestUsageTotalsOnMariaDB(usage_totals.UsageTotals, base.TestCase):
    """What instances got in the newest part of the time."""

    kind = databases.MariaDB
