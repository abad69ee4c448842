# SPDX-License-Identifier: Apache-2.0

"""A region: keystone, placement, glance, Nova and vsched, as processes.

Real services of their own on MariaDB and RabbitMQ: databases and a virtual
host that go with the region. Some computes are simulated: their servers are
threads that do nothing, which their agents hold as they hold vCPUs.
"""

import concurrent.futures
import functools
import importlib.metadata
import os
import time
import typing as ty

import fixtures
from keystoneauth1 import adapter

from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement
from vsched_lib.tests import openstack_services
from vsched_lib.tests import rabbitmq
from vsched_lib.tests import requirements
from vsched_standalone.tests import private_services
from vsched_standalone.tests.region import daemon
from vsched_standalone.tests.region import glance
from vsched_standalone.tests.region import hypervisor
from vsched_standalone.tests.region import nova
from vsched_standalone.tests.region import vsched

#: Only a hang takes longer.
PATIENCE_S = 300

#: Between two looks: what answers has better things to do.
LOOK_S = 0.3

#: Availability zones: simulated computes, and that which boots guests.
SIMULATED, REAL = 'simulated', 'real'

#: Of Nova's API: flavors with their extra specs in servers, hosts by name.
MICROVERSION = '2.90'


class _Networks(openstack_services.Service):
    """Stands in for neutron where there are no networks."""

    distribution = 'waitress'
    application = 'vsched_standalone.tests.region.networks:application'
    variable = 'VSCHED_TEST_NETWORKS'
    at_once = False


def require(test: ty.Any) -> None:
    """End a test that asks for a region where there can't be one.

    :param test: the running test, or its class.
    """
    for name in ('nova', 'glance', 'keystone', 'openstack-placement'):
        try:
            importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            requirements.require(test, 'nova', name + ' is not installed')
    if os.getuid():
        requirements.require(test, 'nova', 'SCHED_DEADLINE needs root')


class Region(fixtures.Fixture):
    """All of it, ready to boot servers.

    :param simulated: how much each simulated compute may promise, in
        milli-CPU, by name.
    :param placement_options: of placement's own group.
    :param real: the names of computes that boot real guests on this
        machine. They share the folder of their disks.
    """

    # For what expects a test and gets this.
    failureException = AssertionError

    def __init__(
        self,
        simulated: ty.Mapping[str, int],
        placement_options: ty.Mapping[str, ty.Any],
        real: ty.Collection[str] = (),
    ) -> None:
        self._simulated = dict(simulated)
        self._placement_options = dict(placement_options)
        self._real = list(real)

    def _setUp(self) -> None:
        self._daemons: list[daemon.Daemon] = []
        self._agents: dict[str, daemon.Daemon] = {}
        self._providers: dict[str, str] = {}
        self.libvirtds: dict[str, hypervisor.Libvirtd] = {}
        self._pool = concurrent.futures.ThreadPoolExecutor(8)
        self.addCleanup(self._pool.shutdown)
        self._make()
        self.addCleanup(self._end)
        self._start()

    def _make(self) -> None:
        database = openstack_services.mariadb
        bus = rabbitmq.make_vhost(self)  # type: ignore[arg-type]
        urls = {
            name: database(self)  # type: ignore[arg-type]
            for name in (
                'keystone',
                'placement',
                'glance',
                'vsched',
                'api',
                'cell0',
                'cell1',
            )
        }
        self.keystone = openstack_services.Keystone(self, urls['keystone'])  # type: ignore[arg-type]
        self.keystone.at_once = False
        self.useFixture(self.keystone)
        auth = self.keystone.password
        self.placement = openstack_services.Placement(
            self,  # type: ignore[arg-type]
            urls['placement'],
            {'placement': self._placement_options},
            self.keystone,
        )
        self.placement.at_once = False
        self.useFixture(self.placement)
        self.glance = self.useFixture(
            glance.Glance(
                self,  # type: ignore[arg-type]
                self.keystone,
                urls['glance'],
            )
        )
        self._networks = self.useFixture(_Networks(self))  # type: ignore[arg-type]
        self.vsched = self.useFixture(vsched.Vsched(bus, urls['vsched'], auth))
        user = {'region_name': 'RegionOne', **auth}
        self.nova = self.useFixture(
            nova.Nova(
                self,  # type: ignore[arg-type]
                {
                    # Control groups are named after domains.
                    'DEFAULT': {
                        'transport_url': bus,
                        'instance_name_template': 'vsched-test-%d-%%08x'
                        % os.getpid(),
                    },
                    'keystone_authtoken': {
                        'www_authenticate_uri': self.keystone.auth_url,
                        'interface': 'public',
                        **auth,
                    },
                    'placement': {'valid_interfaces': 'public', **user},
                    'glance': {'valid_interfaces': 'public'},
                    'neutron': {'valid_interfaces': 'public', **user},
                    'vsched': {
                        'service_type': 'vsched',
                        'refresh_interval': 0.25,
                        'valid_interfaces': 'public',
                        **user,
                    },
                    'vnc': {'enabled': False},
                },
                urls,
            )
        )
        self._conductor = self._add(self.nova.service('nova-conductor'))
        self.scheduler = self._add(self.nova.service('nova-scheduler'))
        for host, capacity_mcpu in self._simulated.items():
            compute = self._add(self.nova.simulated(host))
            self._agents[host] = self._add(
                self.vsched.simulated_agent(host, compute, capacity_mcpu)
            )
        for host in self._real:
            one = self.useFixture(hypervisor.Libvirtd(host))
            self.libvirtds[host] = one
            self._add(
                hypervisor.compute(
                    self.nova, one, os.path.join(self.nova.folder, 'instances')
                )
            )
            self._add(self.vsched.agent(host, one.uri, one.run_dir))
        self._daemons += [self.vsched.collector, self.vsched.api]

    def _add(self, one: daemon.Daemon) -> daemon.Daemon:
        self._daemons.append(self.useFixture(one))
        return one

    def _start(self) -> None:
        def identity() -> None:
            self.keystone.prepare()
            self.keystone.start()
            self._fill_catalogue()

        def claims() -> None:
            self.placement.prepare()
            self.placement.launch()

        def tables() -> None:
            self.nova.prepare()
            # The others wait for it; it needs none of them.
            self._conductor.launch()

        self._together(
            identity,
            tables,
            self.glance.prepare,
            self.vsched.prepare,
            claims,
            *(one.start for one in self.libvirtds.values()),
        )
        for one in self._daemons:
            if one is not self._conductor:
                one.launch()
        listening = (self.nova, self.glance, self._networks)
        for service in listening:
            service.launch()
        for started in (*listening, self.placement):
            started.wait()
        self._await()
        self._zone(SIMULATED, self._simulated)
        if self._real:
            self._zone(REAL, self._real)

    def _zone(self, name: str, hosts: ty.Iterable[str]) -> None:
        """Make an availability zone, so that servers stay among a kind."""
        made = self.compute.post(
            '/os-aggregates',
            json={'aggregate': {'name': name, 'availability_zone': name}},
        ).json()['aggregate']
        for host in hosts:
            self.compute.post(
                '/os-aggregates/%s/action' % made['id'],
                json={'add_host': {'host': host}},
            )

    def _together(self, *tasks: ty.Callable[[], ty.Any]) -> None:
        for one in [self._pool.submit(task) for task in tasks]:
            one.result()

    def _fill_catalogue(self) -> None:
        for kind, url in (
            ('placement', self.placement.endpoint),
            ('image', self.glance.endpoint),
            ('network', self._networks.endpoint),
            ('vsched', self.vsched.endpoint),
            ('compute', self.nova.endpoint + '/v2.1'),
        ):
            self.keystone.add_service(kind, url)

    def _await(self) -> None:
        try:
            self.until(self._ready)
        except RuntimeError as problem:
            raise RuntimeError(
                '\n'.join(
                    [
                        str(problem),
                        *(
                            '%s: %s' % (one.name, one.said())
                            for one in self._daemons
                        ),
                    ]
                )
            ) from problem

    def _ready(self) -> bool:
        for one in self._daemons:
            one.check()
        if not private_services.answers(self.vsched.port):
            return False
        # Those that the scheduler has found.
        mapped = {
            one['hypervisor_hostname']
            for one in self.compute.get('/os-hypervisors').json()[
                'hypervisors'
            ]
        }
        found = {
            one['name']: one
            for one in self.api.get('/v1/hosts').json()['hosts']
            if one['name'] in mapped
        }
        return all(
            host in found
            and found[host]['placement']
            and found[host]['placement']['state'] == 'synced'
            for host in self.hosts
        )

    def _end(self) -> None:
        for one in self._daemons:
            one.end()

    # What is there

    @property
    def hosts(self) -> list[str]:
        """The names of all computes."""
        return [*self._simulated, *self._real]

    @functools.cached_property
    def api(self) -> adapter.Adapter:
        """A session with our API."""
        return self.keystone.adapter('vsched', self.vsched.endpoint)

    @functools.cached_property
    def compute(self) -> adapter.Adapter:
        """A session with Nova's API."""
        found = self.keystone.adapter('compute', self.nova.endpoint + '/v2.1')
        found.default_microversion = MICROVERSION
        return found

    @functools.cached_property
    def images(self) -> adapter.Adapter:
        """A session with glance."""
        return self.keystone.adapter('image', self.glance.endpoint)

    @functools.cached_property
    def claims(self) -> placement.Placement:
        """Our client of placement."""
        return placement.Placement(self.keystone.adapter('placement'))

    def claimed(self, host: str) -> dict[str, int]:
        """What instances claim of a host, in milli-CPU."""
        if host not in self._providers:
            self._providers[host] = self.api.get('/v1/hosts/' + host).json()[
                'host'
            ]['placement']['provider_uuid']
        return self.claims.claims(self._providers[host], names.RESOURCE_CLASS)

    def processes(self, host: str) -> set[int]:
        """Whose threads are a host's vCPUs."""
        if host in self.libvirtds:
            return self.libvirtds[host].guests()
        return self._agents[host].processes()

    def until(self, there: ty.Callable[[], bool]) -> None:
        """Wait until it is so.

        :raises RuntimeError: when it takes too long.
        """
        give_up = time.monotonic() + PATIENCE_S
        while not there():
            if time.monotonic() > give_up:
                raise RuntimeError('waited for %s in vain' % there)
            time.sleep(LOOK_S)
