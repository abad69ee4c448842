# SPDX-License-Identifier: Apache-2.0

"""The keys that messages of agents and collectors are signed with.

Each host has a key of its own, derived from a master key, the host's name
and a serial number. All keys can be derived from the master key, so nothing
secret is stored anywhere else.
"""

from collections.abc import Sequence
import dataclasses
import hmac
import json
import re
import secrets

KEY_BYTES = 32
MAX_SERIAL = 2**31 - 1
#: How many master keys may be in use at a time.
MAX_MASTERS = 8

_HEX = re.compile('[0-9a-f]+', re.ASCII)
_LABEL = b'vsched host key'


@dataclasses.dataclass(frozen=True, slots=True)
class HostKey:
    """The key of one host.

    :param serial: which of the host's keys it is, from 1.
    """

    host: str
    serial: int
    secret: bytes = dataclasses.field(repr=False)

    def render(self) -> str:
        """Return the content of an agent's key file."""
        return (
            json.dumps(
                {
                    'host': self.host,
                    'serial': self.serial,
                    'key': self.secret.hex(),
                }
            )
            + '\n'
        )


def derive(master: bytes, host: str, serial: int) -> HostKey:
    """Return the key of a host.

    :param master: the secret that all keys are derived from.
    """
    text = host.encode('utf-8', 'surrogatepass')
    return HostKey(
        host,
        serial,
        hmac.digest(
            master,
            b'%s|%d|%s|%d' % (_LABEL, len(text), text, serial),
            'sha256',
        ),
    )


def parse_host_key(text: str) -> HostKey:
    """Read what :meth:`HostKey.render` wrote.

    :raises ValueError: when it is invalid.
    """
    try:
        raw = json.loads(text)
        key = HostKey(raw['host'], raw['serial'], bytes.fromhex(raw['key']))
    except (ValueError, TypeError, LookupError, RecursionError):
        raise ValueError(
            'not the content that "vsched-manage host-key issue" prints'
        ) from None
    if (
        not isinstance(key.host, str)
        or not isinstance(key.serial, int)
        or (not 0 < key.serial <= MAX_SERIAL)
        or (len(key.secret) != KEY_BYTES)
    ):
        raise ValueError(
            'not the content that "vsched-manage host-key issue" prints'
        )
    return key


def new_master() -> str:
    """Return a line for the file of master keys."""
    return secrets.token_hex(KEY_BYTES)


def parse_masters(text: str) -> Sequence[bytes]:
    """Read the master keys, the newest first.

    :raises ValueError: when there is none, or one is invalid.
    """
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if line and not line.startswith('#')]
    if not 0 < len(found) <= MAX_MASTERS:
        raise ValueError(
            '%d master keys are not 1 to %d' % (len(found), MAX_MASTERS)
        )
    for line in found:
        if len(line) != 2 * KEY_BYTES or not _HEX.fullmatch(line):
            raise ValueError(
                'a master key is a line of %d hexadecimal digits, as '
                '"vsched-manage master-key create" makes it' % (2 * KEY_BYTES)
            )
    return [bytes.fromhex(line) for line in found]
