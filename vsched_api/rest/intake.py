# SPDX-License-Identifier: Apache-2.0

"""Take requests in before a handler spends anything on them.

A WSGI server hands a request over when its headers are there; the body is
still on its way and arrives as slowly as the client likes. This middleware
reads it, within a time limit and for a limited number of requests at a time,
so that clients that send slowly cannot occupy all threads of a worker. What
is too long, or does not state its length, is refused before it is read.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import io
import json
import os
import select
import threading
import time
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.rest import errors
from vsched_lib.contract import errors as contract_errors

LOG = logging.getLogger(__name__)

Code = contract_errors.Code

#: Longest sum of all header lines and the path, in bytes.
MAX_HEADER_BYTES = 16_384

# A server's read returns only when all that was asked for has arrived, so
# the time limit is looked at between reads this short. 64 KiB take 0.1 s.
_CHUNK_BYTES = 1

# How long the rest of a refused body is read and dropped, in seconds. A
# connection that is closed with unread data is reset, and the client may
# lose the answer.
_DRAIN_S = 2.0
_DRAIN_WAIT_S = 0.5
_DRAIN_CHUNK_BYTES = 65_536


class _Refused(Exception):
    """Why a request gets no further."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.retry_after_s = retry_after_s


class Intake:
    """WSGI middleware that reads bodies for the application.

    :param app: gets each body whole, in memory.
    :param conf: has the options of :mod:`vsched_api.conf.api`.
    :param clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        app: ty.Any,
        conf: cfg.ConfigOpts,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._options = conf.api
        self._clock = clock
        self._places = threading.BoundedSemaphore(conf.api.max_waiting_bodies)

    def __call__(
        self, environ: dict[str, ty.Any], start_response: ty.Any
    ) -> Iterable[bytes]:
        try:
            self._check_headers(environ)
            self._read(environ)
        except _Refused as problem:
            return self._refuse(environ, start_response, problem)
        return ty.cast(Iterable[bytes], self._app(environ, start_response))

    def _check_headers(self, environ: dict[str, ty.Any]) -> None:
        length = sum(
            len(name) + len(value)
            for name, value in environ.items()
            if name.startswith('HTTP_') and isinstance(value, str)
        )
        length += len(environ.get('PATH_INFO', ''))
        length += len(environ.get('QUERY_STRING', ''))
        if length > MAX_HEADER_BYTES:
            raise _Refused(
                431,
                Code.HEADERS_TOO_LARGE,
                'the headers and the path are longer than %d bytes'
                % MAX_HEADER_BYTES,
            )
        try:
            # PEP 3333: one character for each byte.
            environ.get('QUERY_STRING', '').encode('latin-1').decode()
        except UnicodeError:
            raise _Refused(
                400, Code.BAD_REQUEST, 'the query is not UTF-8'
            ) from None

    def _read(self, environ: dict[str, ty.Any]) -> None:
        """Put the body into ``wsgi.input``, whole.

        :raises _Refused: when it is too long or too slow.
        """
        if environ.get('wsgi.input_terminated'):
            # The server has read it already, as waitress does.
            return
        length = _length(environ)
        if length == 0:
            return
        limit = self._options.max_request_body_size
        if length > limit:
            raise _Refused(
                413,
                Code.TOO_LARGE,
                'the body has %d bytes; accepted are %d' % (length, limit),
            )
        if not self._places.acquire(blocking=False):
            raise _Refused(
                503,
                Code.REQUESTS_WAITING,
                'too many requests have not sent their body yet; try again',
                self._options.retry_after_s,
            )
        try:
            body = self._take(environ['wsgi.input'], length)
        finally:
            self._places.release()
        environ['wsgi.input'] = io.BytesIO(body)

    def _take(self, source: ty.Any, length: int) -> bytes:
        limit_s = self._options.body_timeout_s
        until = self._clock() + limit_s
        body = bytearray()
        while len(body) < length:
            if self._clock() > until:
                raise _slow(limit_s)
            try:
                chunk = source.read(min(_CHUNK_BYTES, length - len(body)))
            except OSError:
                # uWSGI's own time limit, or the client is gone.
                raise _slow(limit_s) from None
            if not chunk:
                raise _Refused(
                    400,
                    Code.BAD_REQUEST,
                    'the body ended after %d of %d bytes'
                    % (len(body), length),
                )
            body += chunk
        return bytes(body)

    def _refuse(
        self,
        environ: dict[str, ty.Any],
        start_response: ty.Any,
        problem: _Refused,
    ) -> Iterator[bytes]:
        LOG.info(
            '%s from %s: %d: %s',
            environ.get('REQUEST_METHOD'),
            environ.get('REMOTE_ADDR'),
            problem.status,
            problem.detail,
        )
        body = json.dumps(
            errors.document(
                problem.status,
                problem.code,
                [problem.detail],
                environ.get(errors.ENVIRON_REQUEST_ID),
            )
        ).encode()
        headers = [
            ('Content-Type', 'application/json'),
            ('Content-Length', str(len(body))),
            ('Connection', 'close'),
        ]
        if problem.retry_after_s is not None:
            headers.append(('Retry-After', str(problem.retry_after_s)))
        start_response(
            '%d %s' % (problem.status, errors.title(problem.status)), headers
        )
        yield body
        if problem.status == 413 and self._places.acquire(blocking=False):
            try:
                self._drain(environ['wsgi.input'])
            finally:
                self._places.release()

    def _drain(self, source: ty.Any) -> None:
        try:
            descriptor = source.fileno()
            until = self._clock() + _DRAIN_S
            while (
                self._clock() < until
                and select.select([descriptor], [], [], _DRAIN_WAIT_S)[0]
            ):
                if not os.read(descriptor, _DRAIN_CHUNK_BYTES):
                    return
        except (AttributeError, OSError, ValueError):
            # No socket, or the client has closed it: nothing is lost.
            return


def _slow(limit_s: float) -> _Refused:
    return _Refused(
        408,
        Code.REQUEST_TIMEOUT,
        'the body did not arrive within %g s' % limit_s,
    )


def _length(environ: dict[str, ty.Any]) -> int:
    """How many bytes the body has; 0 without one.

    :raises _Refused: when the request does not state it.
    """
    text = environ.get('CONTENT_LENGTH') or ''
    if environ.get('HTTP_TRANSFER_ENCODING') and not text:
        raise _Refused(
            411,
            Code.LENGTH_REQUIRED,
            'a body without Content-Length is not accepted',
        )
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise _Refused(400, Code.BAD_REQUEST, 'Content-Length is not a number')
    return int(text[:19])
