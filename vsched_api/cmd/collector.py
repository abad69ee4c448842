# SPDX-License-Identifier: Apache-2.0

"""``vsched-collector``: receive the reports of agents."""

from collections.abc import Sequence
import functools
import os
import signal
import socket
import sys

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.collector import processes
from vsched_api.collector import service
from vsched_api.collector import transport as transports
from vsched_api.conf import startup
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)


def main(args: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT, then finish the calls in progress.

    SIGHUP reads mutable options again.

    :param args: the command line, that of the process when None.
    :returns: the exit status.
    """
    conf = startup.read(
        'vsched-collector', sys.argv[1:] if args is None else args
    )
    return processes.Processes(
        # The first one runs the periodic tasks.
        1 + conf.collector.workers,
        functools.partial(_serve, conf),
        functools.partial(startup.reload, conf),
    ).run()


def _serve(conf: cfg.ConfigOpts, process: int) -> int:
    # Several collectors may run on one host.
    name = '%s:%d' % (socket.gethostname(), os.getpid())
    try:
        collector = service.Service(
            conf,
            transports.get_transport(conf) if process else None,
            name,
            tends=not process,
            process=process,
        )
        collector.start()
    except errors.VschedError as problem:
        LOG.error('Collector %s does not start: %s', name, problem)
        return processes.UNUSABLE
    while signal.sigwait(processes.SIGNALS) == signal.SIGHUP:
        startup.reload(conf)
    LOG.info('Collector %s stops', name)
    collector.stop()
    return 0


if __name__ == '__main__':
    sys.exit(main())
