# SPDX-License-Identifier: Apache-2.0

"""Messages on RabbitMQ that are no requests, or nearly."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import json
import typing as ty
import urllib.parse
import uuid

import amqp

from vsched_lib.tests import rabbitmq


def request(
    name: str, arguments: dict[str, ty.Any], /, **changes: ty.Any
) -> dict[str, ty.Any]:
    """A request as oslo.messaging has it.

    :param name: the method's name.
    :param changes: fields that are other ones, the method's among them.
    """
    return {
        'method': name,
        'args': arguments,
        'version': '1.1',
        '_msg_id': uuid.uuid4().hex,
        '_reply_q': 'reply_' + uuid.uuid4().hex,
        '_unique_id': uuid.uuid4().hex,
        **changes,
    }


def envelope(message: ty.Any) -> str:
    """Wrap a message for the wire; text is taken as it is."""
    text = message if isinstance(message, str) else json.dumps(message)
    return json.dumps({'oslo.version': '2.0', 'oslo.message': text})


#: What is in place of a field of a request.
ODD: tuple[ty.Any, ...] = (
    None,
    True,
    0,
    -1,
    1e308,
    '',
    'x',
    '\0',
    'x' * 70_000,
    [],
    {},
    [[]],
)
_DEEP = '[' * 100_000 + ']' * 100_000


def messages(make: Callable[..., dict[str, ty.Any]]) -> Iterator[str | bytes]:
    """Yield what is no request.

    :param make: makes a right one, with changes.
    """
    yield from (
        '',
        '{',
        'null',
        '7',
        '[]',
        '{}',
        '\ud800'.encode('utf-8', 'surrogatepass'),
        b'\xff\xfe',
        b'\x00' * 100,
        _DEEP,
        '9' * 10_000,
    )
    for text in ('', '{', 'null', '7', '[]', '{}', _DEEP, '9' * 10_000):
        yield envelope(text)
    yield json.dumps({'oslo.version': '9.9', 'oslo.message': '{}'})
    yield json.dumps({'oslo.version': [], 'oslo.message': {}})
    for name in (*make(), '_timeout', 'namespace', '_context_user'):
        for odd in ODD:
            yield envelope(make(**{name: odd}))
        yield envelope(json.dumps(make(**{name: '@'})).replace('"@"', _DEEP))
        yield envelope(
            {key: value for key, value in make().items() if key != name}
        )


def publish(
    url: str,
    exchange: str,
    topic: str,
    bodies: Iterable[str | bytes],
    content_type: str = 'application/json',
) -> None:
    """Send messages to a topic.

    :param url: of the virtual host.
    """
    host, port = rabbitmq.address()
    with amqp.Connection(
        '%s:%d' % (host, port),
        virtual_host=urllib.parse.urlsplit(url).path[1:],
    ) as connection:
        channel = connection.channel()
        for body in bodies:
            channel.basic_publish(
                amqp.Message(
                    body, content_type=content_type, content_encoding='utf-8'
                ),
                exchange,
                topic,
            )
