# SPDX-License-Identifier: Apache-2.0

"""``vsched-demo``: the REST API over a fleet of simulated hosts.

Runs the API and the collector on SQLite, and simulated agents. It needs no
virtual machine, no broker and no privilege, and listens on loopback only.
"""

from collections.abc import Sequence
import contextlib
import os
import signal
import sys
import tempfile

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import backend
import pbr.version

# oslo.service selects eventlet unless another backend is set before.
backend.init_backend(backend.BackendType.THREADING)

from vsched_api import conf as api_conf  # noqa: E402
from vsched_lib import command_line  # noqa: E402
from vsched_standalone.demo import service  # noqa: E402

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

#: How long the first reports of all hosts may take, in seconds.
_FIRST_REPORTS_S = 600

_DEFAULTS = service.Settings()

_CLI_OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        'hosts',
        default=_DEFAULTS.hosts,
        min=1,
        max=5_000,
        help='Number of hosts.',
    ),
    cfg.IntOpt(
        'instances',
        default=_DEFAULTS.instances,
        min=0,
        max=200,
        help='Number of instances of each host.',
    ),
    cfg.IntOpt(
        'seed',
        default=_DEFAULTS.seed,
        min=0,
        max=2**31 - 1,
        help='Equal seeds have equal hosts and instances.',
    ),
    cfg.FloatOpt(
        'interval',
        min=0.5,
        max=20,
        help='Seconds between two reports of a host; by default 2, and more '
        'with over 100 hosts.',
    ),
    cfg.IntOpt(
        'history',
        default=_DEFAULTS.history_s,
        min=0,
        max=7_200,
        help='Seconds before the start for which CPU time is reported, '
        'unless the database exists.',
    ),
    cfg.PortOpt(
        'port',
        default=_DEFAULTS.port,
        help='Port of the REST API on 127.0.0.1; 0 for any free one.',
    ),
    cfg.StrOpt(
        'state-path',
        metavar='DIR',
        help='Directory of the database, which is kept. By default it is a '
        'temporary one, which is deleted at the end.',
    ),
]


def _read(argv: Sequence[str]) -> cfg.ConfigOpts:
    conf = command_line.Options()
    logging.register_options(conf)
    api_conf.register_opts(conf)
    conf.register_cli_opts(_CLI_OPTS)
    conf.set_default('auth_strategy', 'noauth', group='api')
    # The files of the services of production are of no concern here.
    conf(
        argv,
        project='vsched',
        prog='vsched-demo',
        version=pbr.version.VersionInfo('vsched').version_string(),
        description='Serve the REST API over simulated hosts, on 127.0.0.1. '
        'No figure is measured.',
        default_config_files=[],
        default_config_dirs=[],
    )
    return conf


def _settings(conf: cfg.ConfigOpts, fresh: bool) -> service.Settings:
    return service.Settings(
        hosts=conf.hosts,
        instances=conf.instances,
        seed=conf.seed,
        interval_s=conf.interval,
        history_s=conf.history if fresh else 0,
        port=conf.port,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT.

    :param argv: the command line, that of the process when None.
    :returns: the exit status.
    """
    conf = _read(list(sys.argv[1:] if argv is None else argv))
    # All threads inherit the mask; the signals are received by sigwait().
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    with contextlib.ExitStack() as stack:
        folder = conf.state_path
        if folder is None:
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix='vsched-demo-')
            )
        else:
            os.makedirs(folder, mode=0o750, exist_ok=True)
        database = os.path.join(os.path.abspath(folder), 'vsched.sqlite')
        fresh = not os.path.exists(database)
        conf.set_default(
            'connection', 'sqlite:///' + database, group='database'
        )
        log = os.path.join(folder, 'vsched-demo.log')
        conf.set_default('log_file', log)
        logging.setup(conf, 'vsched-demo')
        demo = service.Demo(conf, _settings(conf, fresh))
        try:
            demo.start()
        except OSError as problem:
            print(
                'vsched-demo: cannot listen on %s:%d: %s'
                % (service.ADDRESS, conf.port, problem.strerror or problem),
                file=sys.stderr,
            )
            return 1
        stack.callback(demo.stop)
        print('vsched-demo: %s (simulated hosts)' % demo.url, flush=True)
        if not demo.wait_reported(_FIRST_REPORTS_S):
            print(
                'vsched-demo: not all hosts have reported, see %s' % log,
                file=sys.stderr,
            )
            return 1
        print(
            'vsched-demo: %d hosts report; Ctrl-C ends it' % conf.hosts,
            flush=True,
        )
        signal.sigwait(_SIGNALS)
    return 0


if __name__ == '__main__':
    sys.exit(main())
