# SPDX-License-Identifier: Apache-2.0

"""Nova's databases and cells, all in one process.

    python -m vsched_standalone.tests.region.nova_setup CONFIG CELL0 CELL1

What ``nova-manage`` does in five, each of which takes seconds to start.
"""

import os
import sys

# Threads, as all of its services use.
os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = '1'

from nova.cmd import manage
from nova import config
from nova import objects


def main(config_file: str, cell0: str, cell1: str) -> int:
    """Make the tables and map the cells; the exit code.

    :param cell0: URL of the database for what was never scheduled.
    :param cell1: URL of the database for all else.
    """
    config.parse_args(['nova-manage', '--config-file', config_file])
    objects.register_all()
    manage.ApiDbCommands().sync()
    cells = manage.CellV2Commands()
    cells.map_cell0(database_connection=cell0)
    manage.DbCommands().sync()
    return int(cells.create_cell('cell1', database_connection=cell1) or 0)


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
