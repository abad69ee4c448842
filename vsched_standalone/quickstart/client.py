# SPDX-License-Identifier: Apache-2.0

"""A minimal client of the REST API for the quickstart.

It uses HTTP only: every client can read what it reads.
"""

from collections.abc import Mapping
import datetime
import time
import typing as ty

import requests

from vsched_standalone.quickstart import windows


class Client:
    """Client of one API service.

    :param url: its root.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = requests.Session()
        self._session.headers['OpenStack-API-Version'] = 'vsched 1.0'

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, ty.Any] | None = None,
        **query: ty.Any,
    ) -> ty.Any:
        """Send a request.

        :returns: the decoded body, None when there is none.
        :raises requests.HTTPError: with the error message of the API.
        """
        reply = self._session.request(
            method, self.url + path, params=query, json=body, timeout=10
        )
        if reply.status_code >= 400:
            raise requests.HTTPError(
                '%s %s: %d %s' % (method, path, reply.status_code, reply.text),
                response=reply,
            )
        return reply.json() if reply.content else None

    def reservations(self) -> dict[str, dict[str, ty.Any]]:
        """Return all reservations by instance."""
        return {
            one['instance_uuid']: one
            for one in self.call('GET', '/v1/reservations')['reservations']
        }

    def change(self, instance_uuid: str, **fields: ty.Any) -> float:
        """Change the reservation of a running instance.

        :returns: the time of the request, in seconds since the epoch.
        """
        at = time.time()
        self.call('PATCH', '/v1/reservations/' + instance_uuid, fields)
        return at

    def windows(
        self, instance_uuid: str, since: float
    ) -> list[windows.Window]:
        """Return an instance's usage samples that end after a time."""
        start = datetime.datetime.fromtimestamp(
            since, datetime.UTC
        ).isoformat()
        found = self.call(
            'GET',
            '/v1/usage',
            instance_uuid=instance_uuid,
            start=start,
            limit=1000,
        )['usage']
        return [
            windows.Window(
                datetime.datetime.fromisoformat(one['at']).timestamp(),
                one['guest_us'] / one['interval_us'],
            )
            for one in found
        ]
