# SPDX-License-Identifier: Apache-2.0

"""Commands that start the services, as operators do."""

import os
import sys

#: Modules of the commands.
AGENT = 'vsched_agent.cmd.agent'
COLLECTOR = 'vsched_api.cmd.collector'
MANAGE = 'vsched_api.cmd.manage'


def python(
    module: str, options: str, *words: str, interpreter: str = sys.executable
) -> list[str]:
    """Return a command of ours.

    :param module: its module.
    :param options: its configuration file.
    :param words: further arguments.
    :param interpreter: decides which release it is of.
    """
    return [interpreter, '-m', module, '--config-file', options, *words]


def api(port: int, home: str | None = None) -> list[str]:
    """Return the command of the REST service under uWSGI.

    It reads the files that ``OS_VSCHED_CONFIG_FILES`` names.

    :param port: of 127.0.0.1.
    :param home: the virtual environment of another release.
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
        *(() if home is None else ('--virtualenv', home)),
    ]
