# SPDX-License-Identifier: Apache-2.0

"""Keys for tests that use a bus outside of their process."""

import os
import typing as ty

from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys

MASTER = '5a' * signing_keys.KEY_BYTES


def write(folder: str, name: str, text: str, mode: int = 0o600) -> str:
    """A file that only its owner has access to.

    :returns: its path.
    """
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='ascii') as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
    return path


def key(
    host: str, serial: int = 1, master: str = MASTER
) -> signing_keys.HostKey:
    """The key of a host."""
    return signing_keys.derive(bytes.fromhex(master), host, serial)


def signer(
    host: str,
    serial: int = 1,
    epoch: str = 'e' * 32,
    mode: signing.Mode = signing.Mode.REQUIRED,
    master: str = MASTER,
) -> signing.Signer:
    """What signs for a host."""
    return signing.Signer(
        mode, host, lambda: key(host, serial, master), lambda: epoch
    )


class _Known(collector_rpc.Caller):
    def __init__(
        self, found: signing_keys.HostKey, request: signing.Envelope
    ) -> None:
        self.host = found.host
        self._key = found
        self._request = request

    def seal(self, method: str, reply: dict[str, ty.Any]) -> dict[str, ty.Any]:
        return signing.sign_reply(self._key, self._request, method, reply)


class Authenticator(collector_rpc.Authenticator):
    """Checks signatures as a collector does, without its database."""

    def admit(
        self,
        method: str,
        arguments: dict[str, ty.Any],
        signature: object,
        reads: bool,
    ) -> collector_rpc.Caller:
        """Who sent a request."""
        request = signing.Envelope.from_dict(signature)
        found = key(request.host, request.serial)
        if not signing.matches(
            request.mac,
            signing.mac(
                found,
                signing.Direction.REQUEST,
                method,
                request.at_us,
                request.nonce,
                request.epoch,
                request.sequence,
                arguments,
            ),
        ):
            raise errors.Unauthenticated('wrong signature')
        return _Known(found, request)
