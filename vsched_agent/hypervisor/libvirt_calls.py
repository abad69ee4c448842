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

"""Calls to libvirt's daemon that end in time, with errors of the seam."""

from collections.abc import Callable
from collections.abc import Hashable
import typing as ty

import libvirt

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import bounded_calls

T = ty.TypeVar('T')


class LibvirtCalls:
    """Makes calls, each at most as long as the driver can wait.

    :param uri: libvirt's URI, for messages.
    :param timeout_s: longest wait for an answer of the daemon.
    :param lost: told of a connection that is dead.
    """

    def __init__(self, uri: str, timeout_s: float,
                 lost: Callable[[libvirt.virConnect], ty.Any]) -> None:
        self._uri = uri
        self._timeout_s = timeout_s
        self._lost = lost
        self.bounded = bounded_calls.BoundedCalls('vsched-libvirt-call')

    def close(self) -> None:
        """Let the threads go."""
        self.bounded.close()

    def run(self, key: Hashable, connection: libvirt.virConnect,
            function: Callable[[], T]) -> T:
        """Make a call.

        :param key: what would block it.
        :raises base.HypervisorUnavailable: when it fails or comes late.
        """
        try:
            return self.bounded.run(key, self._timeout_s, function)
        except bounded_calls.CallTimedOut as error:
            raise base.HypervisorUnavailable(
                'libvirt at %s: %s' % (self._uri, error)) from error
        except libvirt.libvirtError as error:
            self.check(connection)
            raise base.HypervisorUnavailable(
                'libvirt at %s: %s' % (self._uri, error)) from error

    def run_domain(self, uuid: str, connection: libvirt.virConnect,
                   function: Callable[[], T]) -> T | None:
        """A call about one domain.

        :returns: None when the domain is gone.
        """
        try:
            return self.run(uuid, connection, function)
        except base.HypervisorUnavailable as error:
            cause = error.__cause__
            if (isinstance(cause, libvirt.libvirtError) and
                    cause.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN):
                return None
            raise

    def check(self, connection: libvirt.virConnect) -> None:
        """Something failed: the close callback may come late, or never."""
        if not connection.isAlive():
            self._lost(connection)
