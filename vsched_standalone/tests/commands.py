# SPDX-License-Identifier: Apache-2.0

"""Commands that start the services, as operators do."""

import os
import sys

#: Modules of the commands.
AGENT = 'vsched_agent.cmd.agent'
COLLECTOR = 'vsched_api.cmd.collector'
MANAGE = 'vsched_api.cmd.manage'


def python(module: str, options: str, *words: str) -> list[str]:
    """Return a command of ours.

    :param module: its module.
    :param options: its configuration file.
    :param words: further arguments.
    """
    return [sys.executable, '-m', module, '--config-file', options, *words]


def api(port: int) -> list[str]:
    """Return the command of the REST service under uWSGI.

    It reads the files that ``OS_VSCHED_CONFIG_FILES`` names.

    :param port: of 127.0.0.1.
    """
    return [
        os.path.join(os.path.dirname(sys.executable), 'uwsgi'),
        '--http-socket',
        '127.0.0.1:%d' % port,
        '--module',
        'vsched_api.wsgi.api:application',
        '--master',
        '--processes',
        '1',
        '--threads',
        '4',
        '--enable-threads',
        '--need-app',
        '--die-on-term',
        '--lazy-apps',
        '--single-interpreter',
        '--add-header',
        'Connection: close',
    ]
