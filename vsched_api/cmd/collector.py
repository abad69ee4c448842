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

"""``vsched-collector``: takes agents' reports off the bus."""

from collections.abc import Sequence
import os
import signal
import socket
import sys
import threading

from oslo_log import log as logging

from vsched_api.collector import service
from vsched_api.conf import startup
from vsched_lib.contract import rpc

LOG = logging.getLogger(__name__)


def main(args: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT, then finish what was begun.

    :param args: the command line, that of the process when None.
    :returns: the exit status.
    """
    conf = startup.read(
        'vsched-collector', sys.argv[1:] if args is None else args)
    # Several may run on one host.
    name = '%s:%d' % (socket.gethostname(), os.getpid())
    transport = rpc.get_transport(conf)
    collector = service.Service(conf, transport, name)
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    collector.start()
    asked.wait()
    LOG.info('Collector %s stops', name)
    collector.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
