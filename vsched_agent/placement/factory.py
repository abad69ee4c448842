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

"""Makes the keeper that the options ask for."""

from oslo_config import cfg

from vsched_agent.placement import keeper as keepers
from vsched_lib.openstack import placement
from vsched_lib.openstack import session

GROUP = 'placement'


def configured(conf: cfg.ConfigOpts) -> bool:
    """Whether this host's capacity is kept in placement."""
    return session.configured(conf, GROUP)


def client(conf: cfg.ConfigOpts) -> placement.Placement:
    """Placement, as the options say; nothing is sent yet.

    :raises session.Unavailable: when the options don't say how.
    """
    return placement.Placement(session.connect(conf, GROUP))


def keeper(conf: cfg.ConfigOpts,
           tell: keepers.Tell) -> keepers.Keeper | None:
    """The keeper; None when nobody said where placement is.

    :param tell: takes events, from the keeper's thread.
    """
    if not configured(conf):
        return None
    return keepers.Keeper(
        lambda: client(conf), conf.placement.sync_interval, tell)
