# SPDX-License-Identifier: Apache-2.0

"""Real parts of Nova's scheduler, without its services."""

import time
import typing as ty
from unittest import mock
import uuid

from oslotest import base

from nova_filters import cache
from nova_filters import hosts
from nova_filters.tests import fakes
from vsched_lib.tests import requirements

MISSING: ImportError | None = None
# Without Nova these tests are skipped; the module must still import.
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
    """Return a request of nova-api for instances of one flavor.

    :param specs: without the prefix ``vsched:``.
    """
    return objects.RequestSpec(
        instance_uuid=str(uuid.uuid4()),
        num_instances=1,
        flavor=objects.Flavor(
            flavorid='1',
            name='f',
            vcpus=vcpus,
            memory_mb=512,
            root_gb=1,
            ephemeral_gb=0,
            swap=0,
            extra_specs={'vsched:' + key: text for key, text in specs.items()},
        ),
        scheduler_hints={},
        requested_resources=[],
        pci_requests=None,
        numa_topology=None,
        instance_group=None,
    )


def state(host: str = 'node1', **values: ty.Any) -> ty.Any:
    """Return a compute node as nova-scheduler sees it."""
    found = host_manager.HostState(
        host, host + '.example.org', str(uuid.uuid4())
    )
    found.uuid = str(uuid.uuid4())
    for name, value in values.items():
        setattr(found, name, value)
    return found


class NovaCase(base.BaseTestCase):
    """Filters and weighers know what a test sets."""

    def setUp(self) -> None:
        super().setUp()
        if MISSING is not None:
            requirements.require(self, 'nova', str(MISSING))
        self.known = cache.Known(hosts.NOTHING, None)
        shared = mock.Mock()
        shared.known.side_effect = lambda: self.known
        patch = mock.patch.object(
            process, 'shared', autospec=True, return_value=shared
        )
        patch.start()
        self.addCleanup(patch.stop)

    def set_known(self, *found: ty.Any, **changes: ty.Any) -> None:
        """Set what is known from now on."""
        self.known = cache.Known(
            hosts.NOTHING.after(fakes.answer(*found, **changes), 'tag'),
            time.monotonic(),
        )

    def filtered(
        self, states: ty.Any, spec: ty.Any, index: int = 0
    ) -> list[ty.Any]:
        """Return what Nova's own code leaves with all our filters."""
        return list(
            nova_scheduler_filters.HostFilterHandler().get_filtered_objects(
                [kind() for kind in filters.all_filters()], states, spec, index
            )
        )
