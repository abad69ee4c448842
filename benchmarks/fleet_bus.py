# SPDX-License-Identifier: Apache-2.0

"""Calls of the collector by many agents of one process.

The messages are those of oslo.messaging, whose client takes a thread and a
millisecond of CPU time for each call. Agents have that time on their own
hosts; in a benchmark on one machine the collector would lack it.
"""

import collections
from collections.abc import Callable
import contextlib
import json
import typing as ty
import urllib.parse
import uuid

import amqp

from vsched_lib.contract import collector_rpc
from vsched_lib.contract import rpc

_ENVELOPE_VERSION = '2.0'

#: Takes the identity of a call, its result, and the failure instead of it.
OnReply = Callable[[str, ty.Any, str | None], None]


class Bus:
    """A connection to the broker, with a queue for replies.

    :param url: of the transport: ``rabbit://USER:PASSWORD@HOST:PORT/VHOST``.
    :param on_reply: called by :meth:`drain` for each reply.
    """

    def __init__(self, url: str, on_reply: OnReply) -> None:
        parts = urllib.parse.urlsplit(url)
        self._on_reply = on_reply
        #: Replies that were read. To send a request reads some as well, so
        #: that one which answers a reply must not be sent from within.
        self._read: collections.deque[dict[str, ty.Any]] = collections.deque()
        self._connection = amqp.Connection(
            '%s:%s' % (parts.hostname, parts.port),
            userid=urllib.parse.unquote(parts.username or ''),
            password=urllib.parse.unquote(parts.password or ''),
            virtual_host=urllib.parse.unquote(parts.path[1:]) or '/',
        )
        self._connection.connect()
        self._channel = self._connection.channel()
        self._replies = 'reply_' + uuid.uuid4().hex
        self._channel.queue_declare(self._replies, exclusive=True)
        self._channel.basic_consume(
            self._replies, no_ack=True, callback=self._take
        )

    def call(
        self, method: str, arguments: ty.Any, context: dict[str, ty.Any]
    ) -> str:
        """Send a request to a collector.

        :returns: the identity of the call.
        """
        identity = uuid.uuid4().hex
        message = {
            'method': method,
            'args': arguments,
            'version': collector_rpc.VERSION,
            '_msg_id': identity,
            '_reply_q': self._replies,
            '_timeout': None,
            '_unique_id': uuid.uuid4().hex,
            **{'_context_' + name: value for name, value in context.items()},
        }
        self._channel.basic_publish(
            amqp.Message(
                json.dumps(
                    {
                        'oslo.version': _ENVELOPE_VERSION,
                        'oslo.message': json.dumps(message),
                    }
                ),
                content_type='application/json',
                content_encoding='utf-8',
                delivery_mode=2,
                priority=0,
                expiration=str(1000 * collector_rpc.REPORT_TIMEOUT_S),
            ),
            exchange=rpc.EXCHANGE,
            routing_key=collector_rpc.TOPIC,
        )
        return identity

    def drain(self, timeout_s: float) -> None:
        """Hand on all replies that are read, and wait for one if none is.

        :param timeout_s: the longest wait, in seconds.
        """
        if not self._read:
            with contextlib.suppress(TimeoutError):
                self._connection.drain_events(timeout=timeout_s)
        while self._read:
            reply = self._read.popleft()
            self._on_reply(reply['_msg_id'], reply['result'], reply['failure'])

    def close(self) -> None:
        """Close the connection; the queue goes with it."""
        self._connection.close()

    def _take(self, found: amqp.Message) -> None:
        self._read.append(json.loads(json.loads(found.body)['oslo.message']))
