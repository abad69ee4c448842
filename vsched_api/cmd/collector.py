# SPDX-License-Identifier: Apache-2.0

"""``vsched-collector``: receive the reports of agents."""

from collections.abc import Sequence
import os
import signal
import socket
import sys

from oslo_log import log as logging

from vsched_api.collector import service
from vsched_api.collector import transport as transports
from vsched_api.conf import startup
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)


_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(args: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT, then finish the calls in progress.

    SIGHUP reads mutable options again.

    :param args: the command line, that of the process when None.
    :returns: the exit status.
    """
    # Signals are blocked in all threads and received with sigwait(). A Python
    # handler would run in the main thread between two bytecodes: if a signal
    # arrives just before a blocking call, it would run after that call only.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    conf = startup.read(
        'vsched-collector', sys.argv[1:] if args is None else args
    )
    # Several collectors may run on one host.
    name = '%s:%d' % (socket.gethostname(), os.getpid())
    transport = transports.get_transport(conf)
    try:
        collector = service.Service(conf, transport, name)
        collector.start()
    except errors.VschedError as problem:
        LOG.error('Collector %s does not start: %s', name, problem)
        return 1
    while signal.sigwait(_SIGNALS) == signal.SIGHUP:
        startup.reload(conf)
    LOG.info('Collector %s stops', name)
    collector.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
