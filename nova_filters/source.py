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

"""Asks the service for snapshots."""

import typing as ty

from keystoneauth1 import exceptions
from keystoneauth1 import loading
from oslo_config import cfg

from nova_filters import conf as options
from vsched_lib.contract import snapshot
from vsched_lib.contract import wire

_PATH = '/v1/snapshot'
_NOT_MODIFIED = 304
_OK = 200


class Unavailable(Exception):
    """The service gave no snapshot; the text says why."""


class Source:
    """The service's REST interface.

    Opens nothing before it is used.

    :param conf: has the options of :mod:`nova_filters.conf`.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._adapter: ty.Any = None

    def get(self, since: int | None = None, tag: str | None = None,
            ) -> tuple[snapshot.Snapshot | None, str | None]:
        """All hosts, or what changed.

        :param since: the version that is there, if any.
        :param tag: of the answer that is there.
        :returns: None when nothing has changed; and the tag of what is
            there now.
        :raises Unavailable: when there is no answer, or a wrong one.
        """
        try:
            if self._adapter is None:
                self._adapter = self._connect()
            # Not logged: it may be as long as all other lines of a day.
            answer = self._adapter.get(
                _PATH, raise_exc=False, log=False,
                params={} if since is None else {'since': since},
                headers={} if tag is None else {'If-None-Match': tag})
            if answer.status_code == _NOT_MODIFIED:
                return None, tag
            if answer.status_code != _OK:
                raise Unavailable('it answers %d: %s' % (
                    answer.status_code, answer.text[:200]))
            return (snapshot.Snapshot.from_dict(answer.json()),
                    answer.headers.get('ETag'))
        except (exceptions.ClientException, cfg.Error) as problem:
            # What was found out about the way there may be wrong by now.
            self._adapter = None
            raise Unavailable(str(problem)) from problem
        except (wire.MalformedMessage, ValueError) as problem:
            raise Unavailable(
                'it answers what can not be read: %s' % problem) from problem

    def _connect(self) -> ty.Any:
        group = options.GROUP.name
        return loading.load_adapter_from_conf_options(
            self._conf, group,
            session=loading.load_session_from_conf_options(
                self._conf, group,
                auth=loading.load_auth_from_conf_options(self._conf, group)))
