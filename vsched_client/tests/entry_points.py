# SPDX-License-Identifier: Apache-2.0

"""The entry points of the plugin, whether it is installed or not."""

import configparser
from importlib import metadata
import os
import pathlib
import sys
import typing as ty

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = 'openstack.cli.extension'
COMMANDS = 'openstack.vsched.v1'

#: The distributions that have the plugin.
_DISTRIBUTIONS = ('vsched', 'vsched-client')


def declared() -> dict[str, dict[str, str]]:
    """Return the entry points for ``openstack`` in setup.cfg, by group."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / 'setup.cfg', encoding='utf-8')
    points = parser['options.entry_points']
    return {
        group: dict(
            (word.strip() for word in line.split('='))  # type: ignore[misc]
            for line in points[group].strip().splitlines()
        )
        for group in (PLUGIN, COMMANDS)
    }


def commands() -> dict[str, str]:
    """Return the commands, as typed, and where each is."""
    return {
        name.replace('_', ' '): value
        for name, value in declared()[COMMANDS].items()
    }


def load(command: str) -> ty.Any:
    """Return the class of a command."""
    return metadata.EntryPoint(command, commands()[command], COMMANDS).load()


def install(folder: str, plugin: bool = True) -> dict[str, str]:
    """Make a folder from which Python finds the plugin, or none.

    Installed distributions that have it are hidden by such of the same name.

    :param folder: an empty one.
    :param plugin: whether it has the plugin.
    :returns: environment variables for a Python that imports from there.
    """
    for name in _DISTRIBUTIONS:
        path = pathlib.Path(folder, '%s-0.dist-info' % name.replace('-', '_'))
        path.mkdir()
        (path / 'METADATA').write_text(
            'Metadata-Version: 2.1\nName: %s\nVersion: 0\n' % name
        )
    if plugin:
        (path / 'entry_points.txt').write_text(
            '\n'.join(
                '[%s]\n%s\n'
                % (group, '\n'.join('%s = %s' % one for one in found.items()))
                for group, found in declared().items()
            )
        )
        (path / 'top_level.txt').write_text('vsched_client\n')
    return {
        'PYTHONPATH': os.pathsep.join((folder, str(ROOT))),
        # stevedore keeps what it has found; by the path, but in one place.
        'XDG_CACHE_HOME': os.path.join(folder, 'cache'),
        'HOME': folder,
        'PATH': os.environ['PATH'],
        'PYTHONWARNINGS': 'ignore',
    }


def command_line(*arguments: str) -> list[str]:
    """Return the command that runs ``openstack`` with this Python."""
    return [sys.executable, '-m', 'openstackclient.shell', *arguments]
