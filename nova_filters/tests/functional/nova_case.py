# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Real parts of Nova's scheduler, without its services."""

import time
import typing as ty
from unittest import mock
import uuid

from oslotest import base

from nova_filters import cache
from nova_filters import hosts
from nova_filters.tests import told
from vsched_lib.tests import requirements

MISSING: ImportError | None = None
# Without Nova its tests are skipped, and those of others found.
try:
    from nova import objects
    from nova.scheduler import filters as nova_scheduler_filters
    from nova.scheduler import host_manager

    from nova_filters import filters
    from nova_filters import process
except ImportError as problem:
    MISSING = problem
else:
    objects.register_all()


def request(vcpus: int = 1, **specs: str) -> ty.Any:
    """A request of nova-api for instances of one flavor.

    :param specs: of our namespace.
    """
    return objects.RequestSpec(
        instance_uuid=str(uuid.uuid4()), num_instances=1,
        flavor=objects.Flavor(
            flavorid='1', name='f', vcpus=vcpus, memory_mb=512, root_gb=1,
            ephemeral_gb=0, swap=0, extra_specs={
                'vsched:' + key: text for key, text in specs.items()}),
        scheduler_hints={}, requested_resources=[], pci_requests=None,
        numa_topology=None, instance_group=None)


def state(host: str = 'node1', **values: ty.Any) -> ty.Any:
    """A compute as nova-scheduler sees it."""
    found = host_manager.HostState(
        host, host + '.example.org', str(uuid.uuid4()))
    found.uuid = str(uuid.uuid4())
    for name, value in values.items():
        setattr(found, name, value)
    return found


class NovaCase(base.BaseTestCase):
    """What a test tells of hosts is what filters and weighers know."""

    def setUp(self) -> None:
        super().setUp()
        if MISSING is not None:
            requirements.require(self, 'nova', str(MISSING))
        self.known = cache.Known(hosts.NOTHING, None)
        shared = mock.Mock()
        shared.known.side_effect = lambda: self.known
        patch = mock.patch.object(
            process, 'shared', autospec=True, return_value=shared)
        patch.start()
        self.addCleanup(patch.stop)

    def tell(self, *found: ty.Any, **changes: ty.Any) -> None:
        """What is known from now on."""
        self.known = cache.Known(hosts.NOTHING.after(
            told.answer(*found, **changes), 'tag'), time.monotonic())

    def filtered(self, states: ty.Any, spec: ty.Any,
                 index: int = 0) -> list[ty.Any]:
        """What Nova's own machinery leaves with all our filters."""
        return list(
            nova_scheduler_filters.HostFilterHandler().get_filtered_objects(
                [kind() for kind in filters.all_filters()], states, spec,
                index))
