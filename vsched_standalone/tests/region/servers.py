# SPDX-License-Identifier: Apache-2.0

"""Flavors and servers of a region, as a user and an operator make them."""

import time
import typing as ty
import uuid as uuids

from keystoneauth1 import adapter

from vsched_standalone.tests.region import region

Server = dict[str, ty.Any]


class Servers:
    """What is asked of one region's Nova.

    :param cloud: the region.
    """

    def __init__(self, cloud: region.Region) -> None:
        self._region = cloud
        self._nova: adapter.Adapter = cloud.compute

    def flavor(self, *promise: str, vcpus: int = 1, ram_mb: int = 64) -> str:
        """Make a flavor, as an operator does; its name.

        :param promise: for ``vsched-manage flavor set``, such as
            ``cpu_runtime_us=4000``.
        """
        name = 'vsched-' + uuids.uuid4().hex
        self._nova.post(
            '/flavors',
            json={
                'flavor': {
                    'id': name,
                    'name': name,
                    'vcpus': vcpus,
                    'ram': ram_mb,
                    'disk': 0,
                }
            },
        )
        if promise:
            done = self._region.vsched.manage('flavor', 'set', name, *promise)
            if done.returncode:
                raise RuntimeError(done.stderr)
        return name

    def take_certificates_off(self, flavor: str) -> None:
        """Let a flavor ask placement for no certificate any more."""
        path = '/flavors/%s/os-extra_specs' % flavor
        for key in self._nova.get(path).json()['extra_specs']:
            if 'CERTIFIED' in key:
                self._nova.delete('%s/%s' % (path, key))

    def boot(self, flavor: str, image: str, **more: ty.Any) -> str:
        """Ask for a server; its UUID. It's being built afterwards."""
        made = self._nova.post(
            '/servers',
            json={
                'server': {
                    'name': 'server',
                    'flavorRef': flavor,
                    'imageRef': image,
                    'networks': 'none',
                    **more,
                }
            },
        ).json()['server']
        return str(made['id'])

    def get(self, uuid: str) -> Server:
        """The server, as Nova shows it."""
        return ty.cast(
            Server, self._nova.get('/servers/' + uuid).json()['server']
        )

    def settled(self, uuid: str) -> Server:
        """The server, once nothing is being done to it."""
        give_up = time.monotonic() + region.PATIENCE_S
        while True:
            found = self.get(uuid)
            if (
                found['status'] != 'BUILD'
                and found['OS-EXT-STS:task_state'] is None
            ):
                return found
            if time.monotonic() > give_up:
                raise RuntimeError(
                    'server %s: %s, %s'
                    % (uuid, found['status'], found['OS-EXT-STS:task_state'])
                )
            time.sleep(region.LOOK_S)

    def do(self, uuid: str, **action: ty.Any) -> Server:
        """Have something done to a server; the server when it's done."""
        self._nova.post('/servers/%s/action' % uuid, json=action)
        return self.settled(uuid)

    def console(self, uuid: str) -> str:
        """What a server has written on its console."""
        return str(
            self._nova.post(
                '/servers/%s/action' % uuid, json={'os-getConsoleOutput': {}}
            ).json()['output']
        )

    def delete(self, uuid: str) -> None:
        """Delete a server; gone when this returns, and fine if it was."""
        self._nova.delete('/servers/' + uuid, raise_exc=False)
        self._region.until(
            lambda: (
                self._nova.get('/servers/' + uuid, raise_exc=False).status_code
                == 404
            )
        )
