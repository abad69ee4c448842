# SPDX-License-Identifier: Apache-2.0

"""Real Nova in this process: API, conductor, scheduler, fake computes.

Nova's own functional tests are the frame, and placement is real as well.
Where claims at the same time matter, or what agents make of them, a
:class:`vsched_standalone.tests.region.region.Region` is the better place.
"""

import logging
import os
import sys
import time
import typing as ty
import unittest
from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import noauth
from keystoneauth1 import session as sessions

from vsched_agent.placement import inventory
from vsched_agent.placement import sync
from vsched_lib.contract import placement as names
from vsched_lib.openstack import compute
from vsched_lib.openstack import placement
from vsched_lib.tests import requirements

# Nova's tests would replace threads of the whole process.
os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', '1')

#: Only a hang takes longer.
PATIENCE_S = 180

MISSING: str | None = None
Frame: ty.Any = unittest.TestCase
# Nova's tests change the process that imports them, and tests are found by
# importing them: nobody who did not ask for these should have to bear it.
if 'nova' not in requirements.required():
    MISSING = '%s does not ask for it' % requirements.VARIABLE
else:
    try:
        from nova import monkey_patch

        # Libraries of other tests in this process may have imported
        # eventlet, which Nova forbids itself. Nobody uses it.
        with mock.patch.object(monkey_patch, 'poison_eventlet', autospec=True):
            # Before all others of Nova's tests.
            from nova.tests import functional  # noqa: F401

            from nova import context as nova_context
            from nova.tests import fixtures as frame
            from nova.tests.functional.api import client
            from nova.tests.functional import integrated_helpers
    except ImportError as problem:
        MISSING = str(problem)
    else:
        Frame = integrated_helpers.ProviderUsageBaseTestCase


class Cloud(Frame):
    """A cloud without agents; what is on a host's provider is the test's."""

    compute_driver = 'fake.MediumFakeDriver'
    microversion = '2.90'
    #: Of who uses our client of Nova.
    roles = 'reader,member,admin'

    def setUp(self) -> None:
        if MISSING is not None:
            requirements.require(self, 'nova', MISSING)
        self.flags(
            api_paste_config=os.path.join(
                sys.prefix, 'etc', 'nova', 'api-paste.ini'
            ),
            group='wsgi',
        )
        # The frame's lock on the choice of a cell's database has readers
        # queue behind writers that wait. A thread that writes to the
        # database reads that choice: were it to wait for a writer that
        # waits for a reader that waits for the database, all would wait for
        # ever.
        patch = mock.patch.object(
            frame.ReaderWriterLock, 'has_pending_writers', False
        )
        patch.start()
        self.addCleanup(patch.stop)
        # They end after the frame's capture of logs has.
        pools = logging.getLogger('nova.thread_pool_factory')
        self.addCleanup(pools.setLevel, pools.level)
        pools.setLevel(logging.WARNING)
        # A boot that finds no host is to fail, not to be tried for long.
        self.flags(max_attempts=8, group='scheduler')
        super().setUp()
        # As Nova is delivered: the frame's own policies let nearly everybody
        # do nearly everything.
        self.flags(enforce_new_defaults=True, group='oslo_policy')
        self.useFixture(frame.RealPolicyFixture())
        self._flavors = 0
        self.computes: dict[str, ty.Any] = {}

    # What the tests talk to

    @property
    def nova(self) -> compute.Compute:
        """Our client of Nova, whose user has :attr:`roles`."""
        return compute.Compute(self.nova_adapter)

    @property
    def nova_adapter(self) -> adapter.Adapter:
        """What requests of that user go through."""
        # The frame goes by the user's name.
        admin = 'admin' in self.roles.split(',')
        user = 'admin' if admin else 'vsched'
        return adapter.Adapter(
            sessions.Session(
                auth=noauth.NoAuth(),
                additional_headers={
                    'X-Auth-User': user,
                    'X-User-Id': user,
                    'X-Auth-Project-Id': self.api.project_id
                    if admin
                    else '0123456789abcdef0123456789abcdef',
                    'X-Roles': self.roles,
                },
            ),
            endpoint_override=self.api_fixture.base_url,
        )

    @property
    def claims(self) -> placement.Placement:
        """Our client of the placement that Nova uses."""
        # Nova's frame takes catalogues away, so no plugin is asked.
        return placement.Placement(
            adapter.Adapter(
                sessions.Session(additional_headers={'X-Auth-Token': 'admin'}),
                endpoint_override=self.placement_url,
            )
        )

    @property
    def placement_url(self) -> str:
        """Where it is."""
        return str(self.placement.fixture.endpoint)

    # What a host has

    def start_compute(self, name: str) -> None:
        """Start a compute; nothing of ours is there."""
        self.computes[name] = self.start_service('compute', host=name)

    def periodic_tasks(self) -> None:
        """Have every compute tell placement what it has."""
        for one in self.computes.values():
            one.manager.update_available_resource(
                nova_context.get_admin_context()
            )

    def host(self, name: str, capacity_mcpu: int, **more: ty.Any) -> str:
        """Start a compute, and do as its agent does; our provider's UUID."""
        self.start_compute(name)
        return self.offer(name, capacity_mcpu, **more)

    def offer(self, name: str, capacity_mcpu: int, **more: ty.Any) -> str:
        """What a compute's agent does; our provider's UUID."""
        return sync.sync(
            self.claims,
            inventory.Desired(
                name,
                capacity_mcpu,
                **{
                    'traits': inventory.traits(['deadline'], frozenset()),
                    **more,
                },
            ),
        ).uuid

    def claimed(self, uuid: str) -> dict[str, int]:
        """What instances claim of a provider."""
        return self.claims.claims(uuid, names.RESOURCE_CLASS)

    # What they do

    def flavor(self, vcpus: int = 1, **specs: str) -> str:
        """A flavor with these keys, just as they are; its name."""
        self._flavors += 1
        name = 'vsched-%d' % self._flavors
        self.api.post_flavor(
            {
                'flavor': {
                    'id': name,
                    'name': name,
                    'vcpus': vcpus,
                    'ram': 64,
                    'disk': 0,
                }
            }
        )
        if specs:
            self.api.post_extra_spec(name, {'extra_specs': specs})
        return name

    def found(self, name: str) -> compute.Flavor:
        """What Nova says of a flavor."""
        return next(one for one in self.nova.flavors() if one.name == name)

    def boot(self, flavor: str, **more: ty.Any) -> dict[str, ty.Any]:
        """Ask for a server; it's being built afterwards."""
        return ty.cast(
            dict[str, ty.Any],
            self.api.post_server(
                {
                    'server': {
                        'name': 'server',
                        'flavorRef': flavor,
                        'networks': 'none',
                        'imageRef': '155d900f-4e14-4e4c-a73d-069cbf4541e6',
                        **more,
                    }
                }
            ),
        )

    def settled(self, server: dict[str, ty.Any]) -> dict[str, ty.Any]:
        """The server once it's active, or in error."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            found = self.api.get_server(server['id'])
            if found['status'] != 'BUILD':
                return ty.cast(dict[str, ty.Any], found)
            if time.monotonic() > give_up:
                self.fail('%s is still being built' % server['id'])
            time.sleep(0.1)

    def _wait_for_server_parameter(
        self,
        server: dict[str, ty.Any],
        expected_params: dict[str, ty.Any],
        max_retries: int = 0,
        **more: ty.Any,
    ) -> dict[str, ty.Any]:
        """As the frame does, which gives up after five seconds.

        :param max_retries: the frame's own; it is not kept to.
        """
        return ty.cast(
            dict[str, ty.Any],
            super()._wait_for_server_parameter(
                server, expected_params, 2 * PATIENCE_S, **more
            ),
        )

    def _wait_until_deleted(self, server: dict[str, ty.Any]) -> None:
        """As the frame does, which gives up after twenty seconds."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                found = self.api.get_server(server['id'])
            except client.OpenStackApiNotFoundException:
                return
            if found['status'] == 'ERROR' and server.get('status') != 'ERROR':
                self.fail('%s was not deleted' % server['id'])
            if time.monotonic() > give_up:
                self.fail('%s is still being deleted' % server['id'])
            time.sleep(0.1)

    def all_settled(self) -> list[dict[str, ty.Any]]:
        """Every server there is, once nothing happens to it any more."""
        return [
            self.settled(one) for one in self.api.get_servers(detail=False)
        ]
