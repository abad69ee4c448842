# SPDX-License-Identifier: Apache-2.0

"""What hosts of the fleet report."""

from collections.abc import Sequence
import math
import random
import typing as ty
import uuid

from vsched_api.tests import base
from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_lib.contract import profiles
from vsched_lib.tests import balloon_reports
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles
from vsched_ui.tests import measurements

CAPACITY_MCPU = 15_200
#: A server's name is data.
HOSTILE = '<script>window.hostile=1</script><img src=x onerror=hostile=1>'
ROLES = ('web', 'db', 'cache', 'batch', 'queue', 'api')
#: Projects that own the instances.
PROJECTS = ('7c1f0a52e9b34d6c', 'e03b96d14a7f4c28')
#: Shares of a vCPU, in percent.
SHARES_PCT = (10, 20, 25, 30, 40, 50, 60)
PERIOD_US = 20_000
#: Of the UUIDs of all that the fleet has.
NAMESPACE = uuid.UUID('5b7a1c1e-1a3d-4c9b-8a52-5b0c1f6f9d10')
#: Of the first host; the second has none, and the others do not report them.
#: So many instances fit on a host, whatever their shares.
_MOST_OF_ANY_SHARE = 10

FINDINGS = (
    messages.HostFinding(
        'note',
        'tick',
        'a tick is 4000 us: a budget is overrun by up to that',
        'a kernel with CONFIG_HZ=1000 makes bursts four times finer',
    ),
    messages.HostFinding(
        'problem',
        'cgroup',
        'no control groups are mounted',
        'mount them below /sys/fs/cgroup',
    ),
    messages.HostFinding(
        'note', 'kernel', 'CONFIG_SCHED_HRTICK is off: <b>a tick</b> at best'
    ),
)


class HostReports:
    """Returns parts of the reports of one host.

    :param number: of the host, from 1.
    :param name: of the host.
    :param instances: the UUIDs of those that run there.
    :param now: seconds since the epoch.
    :param hostile: whether an instance has a script for a name.
    """

    def __init__(
        self,
        number: int,
        name: str,
        instances: Sequence[str],
        now: float,
        hostile: bool = True,
    ) -> None:
        self._number = number
        self._name = name
        self._instances = instances
        self._now = now
        self._hostile = hostile
        self._random = random.Random(number)
        # So many that its CPUs do not suffice for larger shares have less.
        parts = max(1, len(instances) // _MOST_OF_ANY_SHARE)
        self._shares_pct = {
            one: self._random.choice(SHARES_PCT) // parts for one in instances
        }

    def first(self) -> dict[str, ty.Any]:
        """Return what the first report has: all that the host lists."""
        reservations = tuple(
            self.reservation(one, index)
            for index, one in enumerate(self._instances)
        )
        admitted = sum(
            one.vcpus * 1000 * (one.enforced_runtime_us or 0) // PERIOD_US
            for one in reservations
        )
        return {
            'host_info': base.host_info(
                agent_version='1.0.0',
                kernel=measurements.KERNEL,
                cpus=measurements.CPUS,
                capacity_mcpu=CAPACITY_MCPU,
                admitted_mcpu=admitted,
                placement=names.PlacementInfo(
                    names.PlacementState.SYNCED,
                    '',
                    str(uuid.uuid5(NAMESPACE, self._name)),
                    CAPACITY_MCPU,
                    admitted,
                ),
                findings={1: FINDINGS, 2: ()}.get(self._number),
            ),
            'instances': tuple(
                messages.InstanceInfo(
                    one,
                    'instance-%04x%04x' % (self._number, index + 1),
                    2,
                    server_name=self._server_name(index),
                    project_id=PROJECTS[index % len(PROJECTS)],
                    flavor_name='c2.share%d' % self._shares_pct[one],
                )
                for index, one in enumerate(self._instances)
            ),
            'reservations': reservations,
        }

    def _server_name(self, index: int) -> str:
        if self._hostile and self._number == 1 and index == 1:
            return HOSTILE
        return '%s-%04d-%02d' % (
            ROLES[(self._number + index) % len(ROLES)],
            self._number,
            index + 1,
        )

    def reservation(
        self, one: str, index: int = 0, **changes: ty.Any
    ) -> messages.ReservationReport:
        """Return the reservation of an instance.

        :param one: UUID of the instance.
        :param index: of the instance, from 0.
        :param changes: fields with other values.
        """
        runtime_us = self._shares_pct[one] * PERIOD_US // 100
        values: dict[str, ty.Any] = {
            'vcpus': 2,
            'since': self._now - 600 * (index + 1),
            'runtime_us': runtime_us,
            'enforced_runtime_us': runtime_us,
            'attested_at': self._now,
        }
        kind = (self._number * 31 + index) % 97
        if kind == 7:
            values.update(
                state=messages.State.REFUSED,
                runtime_us=PERIOD_US,
                enforced_backend=None,
                enforced_runtime_us=None,
                enforced_period_us=None,
                code='vsched.reservation.does_not_fit',
                detail='bandwidth: 2000 mcpu needed exceed 1200 mcpu free',
                figures={'needed_mcpu': 2000, 'free_mcpu': 1200},
            )
        elif kind == 19:
            values.update(
                state=messages.State.DEGRADED,
                enforced_backend='cfs',
                code='vsched.backend.unavailable',
                detail='deadline cannot be used: sched_rt_runtime_us is 0',
            )
        elif index % 3 == 0:
            values['io'] = messages.IoReport(
                'charge',
                threads=2,
                runtime_us=1_200,
                period_us=PERIOD_US,
                guest_runtime_us=max(1, runtime_us - 600),
                charged_mcpu=60,
            )
            values['communication'] = messages.CommunicationReport(
                4, runtime_us * 250, PERIOD_US * 250
            )
        return base.reservation(one, **{**values, **changes})

    def usage(self, start: float, end: float) -> dict[str, ty.Any]:
        """Return seconds of usage, of the instances and of the host.

        :param start: the end of the first second; so is ``end`` of the last.
        """
        samples, hosts = [], []
        for number in range(max(0, int(end - start)) + 1):
            at = start + number
            guest_us = 0
            for index, one in enumerate(self._instances):
                sample = self._sample(one, index, at)
                guest_us += sample.guest_us
                samples.append(sample)
            direct_us = 40_000 * len(self._instances)
            own_us = 250_000 + round(50_000 * math.sin(at / 9))
            hosts.append(
                base.host_usage(
                    at,
                    cpus=measurements.CPUS,
                    guest_us=guest_us,
                    direct_us=direct_us,
                    shared_us=30_000,
                    own_us=own_us,
                    steal_us=0,
                    irq_us=20_000,
                    idle_us=max(
                        0,
                        measurements.CPUS * 1_000_000
                        - guest_us
                        - direct_us
                        - 30_000
                        - own_us,
                    ),
                )
            )
        return {'usage': tuple(samples), 'host_usage': tuple(hosts)}

    def _sample(self, one: str, index: int, at: float) -> messages.UsageSample:
        reserved_us = 2 * self._shares_pct[one] * 10_000
        # Most use what is reserved; some are idle now and then.
        used = 1.0 if index % 4 else 0.55 + 0.4 * math.sin(at / 17 + index)
        short = 0.06 if (self._number + index) % 11 == 0 else 0.004
        got = max(0.0, min(1.0, used) - short * self._random.random())
        return base.sample(
            one,
            at,
            guest_us=round(reserved_us * got),
            promised_us=reserved_us,
            wait_us=round(reserved_us * short),
            direct_us=40_000 + round(15_000 * math.sin(at / 5 + index)),
            direct_wait_us=900,
            shared_us=4_000,
            wakeups=900,
            net_rx_packets=1_200,
            net_tx_packets=1_100,
            disk_read_requests=30,
            disk_write_requests=20,
            executions=(2_000, 600, 1_500, 200, 1_000, 80, 400),
        )

    def in_use(self) -> dict[str, ty.Any]:
        """Return profiles, balloons and events, as a host in use has them."""
        now = self._now
        web, hostile, *others = self._instances
        return {
            'error_profiles': (
                error_profiles.full(
                    windows=180,
                    shares_ppm=(10_000, 50_000, 100_000, 300_000, 500_000),
                    uuid=str(uuid.uuid5(NAMESPACE, self._name + ' error')),
                    version=1,
                    started_at=now - 7200,
                    finished_at=now - 3600,
                    kernel=measurements.KERNEL,
                    cpus=measurements.CPUS,
                ),
                error_profiles.full(
                    windows=60,
                    contenders=(0,),
                    backends=('deadline',),
                    shares_ppm=(100_000, 300_000, 500_000),
                    uuid=str(uuid.uuid5(NAMESPACE, self._name + ' live')),
                    version=1,
                    source=profiles.ProfileSource.LIVE,
                    started_at=now - 3600,
                    finished_at=now - 60,
                    kernel=measurements.KERNEL,
                    cpus=measurements.CPUS,
                ),
            ),
            'overhead_profiles': (
                overhead_profiles.profile(
                    started_at=now - 7200,
                    finished_at=now - 6900,
                    kernel=measurements.KERNEL,
                    cpus=measurements.CPUS,
                ),
            ),
            'balloons': (
                balloon_reports.report(
                    web,
                    vcpus=2,
                    online_vcpus=1,
                    state=balloons.BalloonState.KEPT,
                    cause='its vCPUs waited 79 % of the time that they '
                    'could run',
                    since=now - 900,
                    cpus=(3,),
                ),
                balloon_reports.report(
                    others[0], vcpus=2, online_vcpus=2, since=now - 7200
                ),
            ),
            'all_balloons': True,
            'balloon_changes': (
                balloon_reports.change(
                    others[0],
                    started_at=now - 5000,
                    ended_at=now - 4400,
                    vcpus=2,
                    before_vcpus=2,
                    outcome=balloons.Outcome.REVERTED,
                    detail='its progress counter did not grow',
                    uuid=str(uuid.uuid5(NAMESPACE, self._name + ' change')),
                ),
                balloon_reports.change(
                    web,
                    started_at=now - 900,
                    vcpus=2,
                    before_vcpus=2,
                    outcome=balloons.Outcome.KEPT,
                    uuid=str(uuid.uuid5(NAMESPACE, self._name + ' kept')),
                ),
            ),
            'events': (
                base.event(now - 4000),
                measurements.event(now - 3600),
                base.event(
                    now - 120,
                    code='vsched.drift.repaired',
                    severity=messages.Severity.WARNING,
                    instance_uuid=web,
                    detail='vCPU 0 had policy 0 (SCHED_OTHER)',
                ),
                base.event(
                    now - 45,
                    code='vsched.reservation.does_not_fit',
                    severity=messages.Severity.ERROR,
                    instance_uuid=hostile,
                    detail='bandwidth: 2000 mcpu needed exceed 1200 mcpu',
                    figures={'needed_mcpu': 2000},
                ),
            ),
        }
