# SPDX-License-Identifier: Apache-2.0

"""An API with hosts, instances and an agent, over HTTP.

The same parts as in ``vsched-standalone``: REST service and collector, a bus
in memory, SQLite. The agent is simulated, and refuses what a test gives it to
refuse.
"""

import dataclasses
import typing as ty
from unittest import mock

import fixtures

from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_api.tests.functional import gabbi_fixtures
from vsched_api.tests import populated
from vsched_lib.contract import messages
from vsched_lib.tests import openstack_services
from vsched_standalone import http_server

RESERVED = populated.PROMISED
PLAIN = populated.PLAIN
REFUSED = populated.REFUSED

#: The agent refuses a runtime of so many microseconds and more.
TOO_MUCH_US = 19_000
#: It does not answer changes with exactly this runtime.
SILENT_US = 7_777
#: It holds exactly this runtime with a weaker backend.
WEAKER_US = 8_888


class Agent(gabbi_fixtures.Agent):
    """Refuses what does not fit, and leaves one change without an answer."""

    def __init__(self, collector: ty.Any) -> None:
        super().__init__(ty.cast(ty.Any, _Judge(collector)))


class _Judge:
    """Changes what the agent reports, on its way to the collector."""

    def __init__(self, collector: ty.Any) -> None:
        self._collector = collector

    def __getattr__(self, name: str) -> ty.Any:
        return getattr(self._collector, name)

    def on_report(self, report: messages.Report) -> ty.Any:
        """Pass a report on."""
        return self._collector.on_report(
            dataclasses.replace(
                report,
                reservations=tuple(
                    _judged(one)
                    for one in report.reservations
                    if one.runtime_us != SILENT_US
                ),
            )
        )


def _judged(one: messages.ReservationReport) -> messages.ReservationReport:
    if one.runtime_us == WEAKER_US:
        return dataclasses.replace(
            one,
            state=messages.State.DEGRADED,
            enforced_backend='cfs',
            code='vsched.backend.unavailable',
            detail='deadline cannot be used',
        )
    if (one.runtime_us or 0) < TOO_MUCH_US:
        return one
    return dataclasses.replace(
        one,
        state=messages.State.REFUSED,
        code='vsched.reservation.does_not_fit',
        detail='bandwidth: 2000 mcpu needed exceed 1800 mcpu allowed',
        figures={'needed_mcpu': 2000, 'bound_mcpu': 1800},
    )


def add_provider(placement: openstack_services.Placement) -> None:
    """Add the provider of the first host, of which nothing is claimed."""
    found = base.host_info().placement
    placement.adapter().post(
        '/resource_providers',
        json={'uuid': found and found.provider_uuid, 'name': 'node1:vsched'},
    )


class _Filled(gabbi_fixtures.Api):
    kind = databases.SQLite


class Api(fixtures.Fixture):
    """The API, served on a free port.

    :param config_file: with further options.
    :param keystone: whether tokens are checked.
    :param compute: answers requests about flavors: without a catalogue, all
        services are at one URL.
    :ivar url: of its root.
    """

    def __init__(
        self,
        config_file: str | None = None,
        keystone: bool = False,
        compute: ty.Any = None,
    ) -> None:
        super().__init__()
        self._compute = compute
        self._arguments = (
            () if config_file is None else ('--config-file', config_file)
        )
        self._keystone = keystone

    def _setUp(self) -> None:
        filled = _Filled()
        configuration = database_options.configuration

        def configured(url: str) -> ty.Any:
            conf = configuration(url, *self._arguments)
            for name, seconds in base.TIMEOUTS_S.items():
                conf.set_override(name, seconds, 'database')
            if self._keystone:
                conf.set_override('auth_strategy', 'keystone', 'api')
            return conf

        with (
            mock.patch.object(gabbi_fixtures, 'Agent', Agent),
            mock.patch.object(database_options, 'configuration', configured),
        ):
            filled.start_fixture()
        self.addCleanup(filled.stop_fixture)
        self.url = serve(self, self._answer)

    def _answer(self, environ: ty.Any, start_response: ty.Any) -> ty.Any:
        path = environ['PATH_INFO']
        if self._compute is not None and _of_nova(path):
            # The client has taken the API's version for Nova's.
            environ['PATH_INFO'] = path.removeprefix('/v1')
            return self._compute(environ, start_response)
        return gabbi_fixtures.served()(environ, start_response)


def _of_nova(path: str) -> bool:
    return path == '/v1/flavors/detail' or '/os-extra_specs' in path


def serve(fixture: ty.Any, application: ty.Any) -> str:
    """Serve a WSGI application on a free port until a fixture is cleaned up.

    :returns: the URL of its root.
    """
    server = http_server.HttpServer(application, '127.0.0.1', 0, threads=4)
    server.start()
    fixture.addCleanup(server.stop)
    return 'http://127.0.0.1:%d' % server.port
