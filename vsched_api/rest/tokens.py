# SPDX-License-Identifier: Apache-2.0

"""Check tokens with keystonemiddleware, and report an outage of keystone.

With ``delay_auth_decision`` the middleware treats a keystone that does not
answer like a token that it refuses. Clients must see the difference: 503
with ``Retry-After`` is tried again, 401 is not.
"""

from collections.abc import Callable
import threading
import time
import typing as ty

from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

GROUP = 'keystone_authtoken'

#: How long keystone may take to connect and to answer, in seconds, unless
#: the operator says otherwise: by default there is no limit, and a keystone
#: that hangs would take every thread.
_ANSWER_TIMEOUT_S = 5
_RETRIES = 0

_DETAIL = 'the token cannot be checked: keystone does not answer; try again'


class _Away(Exception):
    """Keystone does not answer, or gives no usable answer."""


class _Identity:
    """The middleware's client of keystone; it retries seldom during an outage.

    Stands for a ``keystonemiddleware`` IdentityServer.

    :param identity: the one it stands for.
    :param pause_s: how long keystone is left alone after it failed.
    :param clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        identity: ty.Any,
        pause_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._identity = identity
        self._pause_s = pause_s
        self._clock = clock
        self._lock = threading.Lock()
        # None while keystone answers.
        self._not_before: float | None = None

    @property
    def www_authenticate_uri(self) -> str:
        """Where clients get tokens; empty when nobody can say now."""
        try:
            return str(self._identity.www_authenticate_uri or '')
        except Exception as problem:
            LOG.warning('The endpoint of keystone is not known: %s', problem)
            return ''

    def invalidate(self) -> ty.Any:
        """Forget where keystone is."""
        return self._identity.invalidate()

    def verify_token(self, token: str, **more: ty.Any) -> ty.Any:
        """What keystone says of a token.

        :raises auth_token.InvalidToken: when keystone refuses it.
        :raises _Away: when keystone cannot be asked.
        """
        self._admit()
        try:
            found = self._identity.verify_token(token, **more)
        except auth_token.InvalidToken:
            self._answered()
            raise
        except Exception as problem:
            # The base classes of what a session may raise differ: refused,
            # timed out, TLS, no endpoint, bad credentials of our own.
            with self._lock:
                self._not_before = self._clock() + self._pause_s
            LOG.error(
                'Keystone does not check tokens: %s: %s',
                type(problem).__name__,
                problem,
            )
            raise _Away from problem
        self._answered()
        return found

    def _admit(self) -> None:
        with self._lock:
            if self._not_before is None:
                return
            if self._clock() < self._not_before:
                raise _Away
            # One request tries; the others wait for what it finds.
            self._not_before = self._clock() + self._pause_s

    def _answered(self) -> None:
        with self._lock:
            self._not_before = None


class _Protocol(auth_token.AuthProtocol):
    """Marks requests whose token could not be checked."""

    def __init__(
        self, app: ty.Any, conf: cfg.ConfigOpts, problem_key: str
    ) -> None:
        super().__init__(
            app, {'oslo_config_config': conf, 'delay_auth_decision': True}
        )
        self._problem_key = problem_key
        identity: ty.Any = self._identity_server
        self._identity_server: ty.Any = _Identity(
            identity, conf.api.retry_after_s
        )

    def process_request(self, request: ty.Any) -> ty.Any:
        """Check the tokens of a request, and keep what came of it."""
        try:
            return super().process_request(request)
        except _Away:
            request.user_token_valid = False
            request.environ[self._problem_key] = _DETAIL
            return None


def make(app: ty.Any, conf: cfg.ConfigOpts, problem_key: str) -> ty.Any:
    """Wrap a WSGI application so that tokens are checked.

    :param conf: gets the options of ``[keystone_authtoken]``.
    :param problem_key: where the environment of a request says why its token
        was not checked.
    """
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
    conf.set_default('http_connect_timeout', _ANSWER_TIMEOUT_S, GROUP)
    conf.set_default('http_request_max_retries', _RETRIES, GROUP)
    return _Protocol(app, conf, problem_key)
