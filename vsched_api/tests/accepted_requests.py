# SPDX-License-Identifier: Apache-2.0

"""What has to be there for generated requests to succeed.

Over the database of :mod:`vsched_api.tests.populated`. Most requests that
change something change what they need: it is restored before each of them.
"""

from collections.abc import Callable
import itertools
import typing as ty
import unittest

from keystoneauth1 import loading
from oslo_config import cfg

from vsched_api.collector import endpoint
from vsched_api.operations import announcements
from vsched_api.operations import balloons
from vsched_api.operations import errors
from vsched_api.operations import jobs
from vsched_api.operations import overrides
from vsched_api.operations import reservations
from vsched_api.tests import base
from vsched_api.tests import generated_requests
from vsched_api.tests import populated
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_lib.tests import openstack_services

Accepted = generated_requests.Accepted

#: A host whose agent has stopped.
GONE = 'gone'
_GONE_FOR_S = 86_400

_NOBODY = announcements.Announcer(None)
#: Any override is right for a request that does not name another one.
_ANY = {'If-Match': '*'}
_RESERVATION = {
    'runtime_us': 4_000,
    'period_us': 20_000,
    'mode': 'capped',
    'backend': 'deadline',
}


class Preparations:
    """Prepares requests.

    :param conf: of the service.
    :param collector: of the same database, which is filled.
    :param now: seconds since the epoch, of the service.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        collector: endpoint.Collector,
        now: float = base.NOW,
    ) -> None:
        self._collector = collector
        self._database = collector.database
        self._now = now
        self._numbers = itertools.count(2)
        self._past = endpoint.Collector(conf, now=lambda: now - _GONE_FOR_S)

    def close(self) -> None:
        """End the connections that were made here."""
        self._past.database.dispose()

    def all(self) -> dict[str, Callable[[], Accepted]]:
        """Return them by operation ID."""
        return {
            'balloons_create': self._order,
            'balloons_show': lambda: Accepted(_path(populated.PLAIN)),
            'balloons_update': self._order,
            'balloons_delete': self._ordered,
            'evaluations_create': self._evaluated,
            'hosts_delete': self._gone,
            'jobs_update': self._job,
            'profiles_create': self._idle,
            'profiles_create_overhead': self._idle,
            'reservations_create': self._unreserved,
            'reservations_update': self._overridden,
            'reservations_delete': self._removable,
        }

    # Balloons

    def _order(self) -> Accepted:
        generation = balloons.get(self._database, populated.PLAIN).generation
        return Accepted(
            _path(populated.PLAIN),
            {
                'instance_uuid': populated.PLAIN,
                'target_vcpus': 1,
                'generation': generation,
                **_ANY,
            },
        )

    def _ordered(self) -> Accepted:
        made = balloons.order(
            self._database,
            _NOBODY,
            overrides.Change(populated.PLAIN, self._now),
            {'target_vcpus': 1},
        )
        return Accepted(
            _path(populated.PLAIN), {'generation': made.generation, **_ANY}
        )

    # Reservations

    def _unreserved(self) -> Accepted:
        try:
            reservations.withdraw(
                self._database,
                _NOBODY,
                overrides.Change(populated.PLAIN, self._now),
            )
        except errors.NotFound:
            # The last request was refused.
            pass
        return Accepted(
            values={'instance_uuid': populated.PLAIN, **_RESERVATION}
        )

    def _overridden(self) -> Accepted:
        made = reservations.change(
            self._database,
            _NOBODY,
            overrides.Change(populated.PROMISED, self._now),
            dict(_RESERVATION),
        )
        return Accepted(
            _path(populated.PROMISED),
            {'generation': made.generation, **_RESERVATION, **_ANY},
        )

    def _removable(self) -> Accepted:
        """Return one with a flavor's reservation below, or one without."""
        if next(self._numbers) % 2:
            return self._overridden()
        self._unreserved()
        made = reservations.create(
            self._database,
            _NOBODY,
            overrides.Change(populated.PLAIN, self._now),
            dict(_RESERVATION),
        )
        return Accepted(
            _path(populated.PLAIN), {'generation': made.generation, **_ANY}
        )

    # Hosts and their jobs

    def _gone(self) -> Accepted:
        self._past.on_report(
            messages.Report(
                GONE, 1, self._now - _GONE_FOR_S, host_info=base.host_info()
            )
        )
        return Accepted({'name': GONE})

    def _idle(self) -> Accepted:
        """Finish every job of the host."""
        self._collector.on_report(
            messages.Report(
                base.HOST,
                next(self._numbers),
                self._now,
                jobs=tuple(
                    messages.JobReport(
                        one.uuid,
                        one.attempt,
                        messages.JobState.DONE,
                        1_000_000,
                        self._now,
                    )
                    for one in jobs.orders(self._database, base.HOST).orders
                ),
            )
        )
        return Accepted({'name': base.HOST})

    def _job(self) -> Accepted:
        self._idle()
        made = jobs.create(
            self._database,
            _NOBODY,
            base.HOST,
            messages.JobKind.PROFILE_ERROR,
            {'quick': True},
            self._now,
        )
        return Accepted({'job_uuid': made.uuid})

    @staticmethod
    def _evaluated() -> Accepted:
        return Accepted(
            values={'hosts': [base.HOST], 'override': dict(_RESERVATION)},
            needed={'extra_specs': {'vsched:cpu_runtime_us': '4000'}},
            without=('demand_mcpu',),
        )


def _path(instance_uuid: str) -> dict[str, str]:
    return {'instance_uuid': instance_uuid}


def use_placement(conf: cfg.ConfigOpts, test: unittest.TestCase) -> None:
    """Configure a real placement that has the provider of the first host.

    :param test: ends the service; fails or is skipped without placement.
    """
    service = openstack_services.Placement(test)
    service.setUp()
    test.addCleanup(service.cleanUp)
    conf.register_opts(
        loading.get_auth_plugin_conf_options('admin_token'), group='placement'
    )
    for name, value in service.options.items():
        conf.set_override(name, value, 'placement')
    found = base.host_info().placement
    assert found is not None
    client: ty.Any = service.client()
    client.ensure_class(names.RESOURCE_CLASS)
    service.adapter().post(
        '/resource_providers',
        json={'uuid': found.provider_uuid, 'name': base.HOST + ':vsched'},
    )
