# SPDX-License-Identifier: Apache-2.0

"""Requests snapshots from the service."""

import typing as ty

from keystoneauth1 import exceptions
from keystoneauth1 import loading
from oslo_config import cfg

from nova_filters import conf as options
from vsched_lib.contract import snapshot
from vsched_lib.contract import wire

_NOT_MODIFIED = 304
_OK = 200


class Unavailable(Exception):
    """The service returned no snapshot; the text is the reason."""


class Source:
    """The service's REST interface.

    Connects at the first use.

    :param conf: has the options of :mod:`nova_filters.conf`.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._adapter: ty.Any = None

    def get(
        self, since: int | None = None, tag: str | None = None
    ) -> tuple[snapshot.Snapshot | None, str | None]:
        """Return all hosts, or what changed.

        :param since: the version that the caller has, if any.
        :param tag: ETag of the answer that the caller has.
        :returns: None when nothing has changed; and the current ETag.
        :raises Unavailable: when there is no answer, or an invalid one.
        """
        try:
            if self._adapter is None:
                self._adapter = self._connect()
            # Not logged: the body may be megabytes.
            answer = self._adapter.get(
                snapshot.PATH,
                raise_exc=False,
                log=False,
                params={} if since is None else {'since': since},
                headers={} if tag is None else {'If-None-Match': tag},
            )
            if answer.status_code == _NOT_MODIFIED:
                return None, tag
            if answer.status_code != _OK:
                raise Unavailable(
                    'it answers %d: %s'
                    % (answer.status_code, answer.text[:200])
                )
            return (
                snapshot.Snapshot.from_dict(answer.json()),
                answer.headers.get('ETag'),
            )
        except (exceptions.ClientException, cfg.Error) as problem:
            # The cached endpoint or token may be outdated.
            self._adapter = None
            raise Unavailable(str(problem)) from problem
        except (wire.MalformedMessage, ValueError) as problem:
            raise Unavailable(
                'it answers what cannot be parsed: %s' % problem
            ) from problem

    def _connect(self) -> ty.Any:
        group = options.GROUP.name
        return loading.load_adapter_from_conf_options(
            self._conf,
            group,
            session=loading.load_session_from_conf_options(
                self._conf,
                group,
                auth=loading.load_auth_from_conf_options(self._conf, group),
            ),
        )
