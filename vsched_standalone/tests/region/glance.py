# SPDX-License-Identifier: Apache-2.0

"""Real glance, with its images in a folder."""

import os
import sys
import typing as ty
import unittest

from keystoneauth1 import adapter

from vsched_lib.tests import openstack_services


class Glance(openstack_services.Service):
    """An image service.

    :param keystone: who says who is who.
    :param connection: of its database.
    """

    distribution = 'glance'
    application = 'glance.wsgi.api:application'
    variable = 'OS_GLANCE_CONFIG_DIR'
    at_once = False

    def __init__(
        self,
        test: unittest.TestCase,
        keystone: openstack_services.Keystone,
        connection: str,
    ) -> None:
        super().__init__(test)
        self._keystone = keystone
        self._connection = connection

    def prepare(self) -> None:
        """Configuration and tables."""
        folders = {}
        for name in ('images', 'staging', 'tasks'):
            folders[name] = os.path.join(self.folder, name)
            os.mkdir(folders[name])
        self.write(
            'glance-api.conf',
            {
                'DEFAULT': {
                    'enabled_backends': 'files:file',
                    'enabled_import_methods': '[]',
                    'worker_self_reference_url': self.endpoint,
                },
                'database': {'connection': self._connection},
                'glance_store': {'default_backend': 'files'},
                'files': {'filesystem_store_datadir': folders['images']},
                'os_glance_staging_store': {
                    'filesystem_store_datadir': folders['staging']
                },
                'os_glance_tasks_store': {
                    'filesystem_store_datadir': folders['tasks']
                },
                'paste_deploy': {
                    'flavor': 'keystone',
                    'config_file': os.path.join(
                        sys.prefix, 'etc', 'glance', 'glance-api-paste.ini'
                    ),
                },
                'keystone_authtoken': {
                    'www_authenticate_uri': self._keystone.auth_url,
                    'interface': 'public',
                    **self._keystone.password,
                },
            },
        )
        self.run(
            'glance-manage',
            '--config-file',
            os.path.join(self.folder, 'glance-api.conf'),
            'db_sync',
        )


def upload(
    images: adapter.Adapter,
    name: str,
    data: bytes,
    disk_format: str = 'raw',
    container_format: str = 'bare',
    **properties: ty.Any,
) -> str:
    """Make an image.

    :param images: a session with the image service.
    :returns: its UUID.
    """
    made = images.post(
        '/v2/images',
        json={
            'name': name,
            'disk_format': disk_format,
            'container_format': container_format,
            **properties,
        },
    ).json()
    images.put(
        '/v2/images/%s/file' % made['id'],
        data=data,
        headers={'Content-Type': 'application/octet-stream'},
    )
    return str(made['id'])
