# SPDX-License-Identifier: Apache-2.0

"""Calls to libvirt's daemon with timeouts and the interface's errors."""

from collections.abc import Callable
from collections.abc import Hashable
import typing as ty

import libvirt

from vsched_agent.hypervisor import base
from vsched_lib import bounded_calls

T = ty.TypeVar('T')


class LibvirtCalls:
    """Makes calls with the driver's timeout.

    :param uri: libvirt's URI, for messages.
    :param timeout_s: longest wait for an answer of the daemon.
    :param lost: called with a connection that is dead.
    """

    def __init__(
        self,
        uri: str,
        timeout_s: float,
        lost: Callable[[libvirt.virConnect], ty.Any],
    ) -> None:
        self._uri = uri
        self._timeout_s = timeout_s
        self._lost = lost
        self.bounded = bounded_calls.BoundedCalls('vsched-libvirt-call')

    def close(self) -> None:
        """End the threads."""
        self.bounded.close()

    def run(
        self,
        key: Hashable,
        connection: libvirt.virConnect,
        function: Callable[[], T],
    ) -> T:
        """Make a call.

        :param key: calls with the same key may block each other.
        :raises base.HypervisorUnavailable: when it fails or times out.
        """
        try:
            return self.bounded.run(key, self._timeout_s, function)
        except bounded_calls.CallTimedOut as error:
            raise base.HypervisorUnavailable(
                'libvirt at %s: %s' % (self._uri, error)
            ) from error
        except libvirt.libvirtError as error:
            self.check(connection)
            raise base.HypervisorUnavailable(
                'libvirt at %s: %s' % (self._uri, error)
            ) from error

    def run_domain(
        self,
        uuid: str,
        connection: libvirt.virConnect,
        function: Callable[[], T],
    ) -> T | None:
        """Make a call about one domain.

        :returns: None when the domain does not run any more.
        """
        try:
            return self.run(uuid, connection, function)
        except base.HypervisorUnavailable as error:
            cause = error.__cause__
            if (
                isinstance(cause, libvirt.libvirtError)
                and cause.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN
            ):
                return None
            raise

    def check(self, connection: libvirt.virConnect) -> None:
        """Check a connection whose close callback may be late."""
        if not connection.isAlive():
            self._lost(connection)
