# SPDX-License-Identifier: Apache-2.0

"""The application for a WSGI server: ``vsched_api.wsgi.api:application``.

Options are read from ``vsched.conf`` and ``vsched-api.conf`` in the usual
folders, or from the files that OS_VSCHED_CONFIG_FILES names, separated by
colons. The command line belongs to the server.
"""

import importlib
import os
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api import app
from vsched_api.conf import startup
from vsched_api.rest import request_metrics
from vsched_lib.contract import rpc

LOG = logging.getLogger(__name__)

FILES_VARIABLE = 'OS_VSCHED_CONFIG_FILES'


def make() -> ty.Any:
    """Read the options and make the application."""
    named = os.environ.get(FILES_VARIABLE)
    conf = startup.read(
        'vsched-api', [], files=named.split(':') if named else None
    )
    _prepare_workers(conf)
    return app.create_app(conf, rpc.get_transport(conf))


def _prepare_workers(conf: cfg.ConfigOpts) -> None:
    # The application is loaded once, before uWSGI forks; on SIGHUP it forks
    # again.
    try:
        uwsgi: ty.Any = importlib.import_module('uwsgi')
    except ImportError:
        # Another server, which loads the application again by itself.
        return
    uwsgi.post_fork_hook = lambda: startup.reload(conf)
    try:
        request_metrics.share(uwsgi.worker_id)
    except OSError as problem:
        LOG.error(
            'Each worker has metrics of its own requests only: %s', problem
        )


application = make()
