# SPDX-License-Identifier: Apache-2.0

"""Real Nova, each of its services a process of its own."""

import os
import shutil
import sys
import typing as ty
import unittest

from vsched_lib.tests import openstack_services
from vsched_standalone.tests.region import daemon
from vsched_standalone.tests.region import domains

_BIN = os.path.dirname(sys.executable)
_HERE = 'vsched_standalone.tests.region.'

_FILTERS = (
    'ComputeFilter',
    'ComputeCapabilitiesFilter',
    'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter',
    'ServerGroupAffinityFilter',
    'VschedReservationFilter',
    'VschedAllocationErrorFilter',
    'VschedIoOverheadFilter',
)

#: What each host has, without its data.
Sections = dict[str, dict[str, ty.Any]]


class Nova(openstack_services.Service):
    """nova-api, and the configuration that all of Nova's services share.

    :param shared: options of all of them: whom they talk to.
    :param databases: URLs by name: api, cell0, cell1.
    """

    distribution = 'nova'
    application = 'nova.wsgi.osapi_compute:application'
    variable = 'OS_NOVA_CONFIG_DIR'
    at_once = False

    def __init__(
        self,
        test: unittest.TestCase,
        shared: Sections,
        databases: ty.Mapping[str, str],
    ) -> None:
        super().__init__(test)
        self._shared = shared
        self._databases = databases

    def prepare(self) -> None:
        """Configuration, tables and cells."""
        # Written here, or it is looked for in /etc.
        shutil.copy(
            os.path.join(sys.prefix, 'etc', 'nova', 'api-paste.ini'),
            self.folder,
        )
        sections = self.sections(self.folder, 'controller')
        sections['api_database'] = {'connection': self._databases['api']}
        sections['database'] = {'connection': self._databases['cell1']}
        sections['wsgi'] = {
            'api_paste_config': os.path.join(self.folder, 'api-paste.ini')
        }
        sections['conductor'] = {'workers': 1}
        sections['scheduler'] = {
            'workers': 2,
            'max_attempts': 8,
            'discover_hosts_in_cells_interval': 1,
        }
        sections['filter_scheduler'] = {
            'available_filters': [
                'nova.scheduler.filters.all_filters',
                'nova_filters.filters.all_filters',
            ],
            'enabled_filters': ','.join(_FILTERS),
            'weight_classes': 'nova.scheduler.weights.all_weighers,'
            'nova_filters.weighers.all_weighers',
            'track_instance_changes': True,
        }
        self._file = self.write('nova.conf', sections)
        self.run(
            'python',
            '-m',
            _HERE + 'nova_setup',
            self._file,
            self._databases['cell0'],
            self._databases['cell1'],
        )

    def sections(self, folder: str, host: str) -> Sections:
        """Options of one service.

        :param folder: for what it keeps.
        :param host: what it is called.
        """
        shared = {
            name: dict(options) for name, options in self._shared.items()
        }
        shared['DEFAULT'] |= {
            'host': host,
            'state_path': folder,
            'my_ip': '127.0.0.1',
            'allow_resize_to_same_host': True,
            'graceful_shutdown_timeout': 2,
            'service_down_time': 600,
            'resize_confirm_window': 0,
        }
        shared['oslo_concurrency'] = {
            'lock_path': os.path.join(folder, 'locks')
        }
        return shared

    def service(self, name: str) -> daemon.Daemon:
        """A service of the controller; nothing is started.

        :param name: nova-conductor or nova-scheduler.
        """
        return daemon.Daemon(
            name,
            lambda _: [
                sys.executable,
                os.path.join(_BIN, name),
                '--config-file',
                self._file,
            ],
        )

    def simulated(self, host: str) -> daemon.Daemon:
        """A compute with a folder of domains; nothing is started."""

        def command(folder: str) -> list[str]:
            sections = self.sections(folder, host)
            sections['DEFAULT']['compute_driver'] = 'told.Driver'
            return [
                sys.executable,
                '-m',
                _HERE + 'nova_driver',
                '--config-file',
                openstack_services.write(
                    os.path.join(folder, 'nova.conf'), sections
                ),
            ]

        return daemon.Daemon('nova-compute of ' + host, command)


def domains_of(compute: daemon.Daemon) -> str:
    """Where the domains of a simulated compute are."""
    return os.path.join(compute.folder, domains.NAME)
