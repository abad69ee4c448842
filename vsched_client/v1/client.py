# SPDX-License-Identifier: Apache-2.0

"""The client of one API."""

import typing as ty

from vsched_client import adapter
from vsched_client.v1 import balloons
from vsched_client.v1 import evaluations
from vsched_client.v1 import events
from vsched_client.v1 import flavors
from vsched_client.v1 import hosts
from vsched_client.v1 import instances
from vsched_client.v1 import jobs
from vsched_client.v1 import profiles
from vsched_client.v1 import reservations
from vsched_client.v1 import usage


class Client:
    """The nouns of the API.

    :param session: of keystoneauth1.
    :param options: of :class:`vsched_client.adapter.Adapter`.
    """

    def __init__(self, session: ty.Any, **options: ty.Any) -> None:
        self.adapter = adapter.Adapter(session, **options)
        self.balloons = balloons.Balloons(self.adapter)
        self.evaluations = evaluations.Evaluations(self.adapter)
        self.events = events.Events(self.adapter)
        self.flavors = flavors.Flavors(self.adapter)
        self.hosts = hosts.Hosts(self.adapter)
        self.instances = instances.Instances(self.adapter)
        self.jobs = jobs.Jobs(self.adapter)
        self.profiles = profiles.Profiles(self.adapter)
        self.reservations = reservations.Reservations(self.adapter)
        self.usage = usage.Usage(self.adapter)
