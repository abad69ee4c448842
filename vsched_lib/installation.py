# SPDX-License-Identifier: Apache-2.0

"""``vsched-install``: units, users and samples of the services of this host.

A wheel has no place for files of the system. It has them in ``share/vsched``
of its environment; this command puts those of some services in place, with
the paths of the environment that it runs in.
"""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import os
import pathlib
import re
import sys
import sysconfig

#: Commands that the shipped files name below /usr/bin.
_COMMANDS = re.compile(r'/usr/bin/(vsched-[a-z]+|uwsgi|python3)(?![\w.-])')

_CONTROLLER = (
    'sysusers.d/vsched.conf',
    'tmpfiles.d/vsched.conf',
    'vsched-api.conf.sample',
    'policy.yaml.sample',
)

#: By service: what it needs, as patterns of names in the samples' folder.
SERVICES = {
    'agent': (
        'systemd/vsched-agent.service',
        'systemd/vsched-helper-*',
        'sysusers.d/vsched-agent.conf',
        'tmpfiles.d/vsched-agent.conf',
        'vsched-agent.conf.sample',
    ),
    'api': (
        'systemd/vsched-api.service',
        'vsched-api-uwsgi.ini',
        *_CONTROLLER,
    ),
    'collector': ('systemd/vsched-collector.service', *_CONTROLLER),
}

#: Names of configuration files that differ from those of their samples, and
#: permissions of those that hold passwords.
_NAMES = {
    'vsched-api.conf.sample': 'vsched.conf',
    'vsched-agent.conf.sample': 'vsched-agent.conf',
    'policy.yaml.sample': 'policy.yaml',
}
_SECRET = 0o640
_PUBLIC = 0o644


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """Where files go.

    :param root: directory that stands for ``/``.
    :param vendor: whether they are a package's and not an administrator's.
    """

    root: pathlib.Path
    vendor: bool

    def target(self, name: str) -> pathlib.Path:
        """Return where a file goes.

        :param name: in the samples' folder.
        """
        kind, slash, file = name.rpartition('/')
        if not slash:
            return self.root / 'etc/vsched' / _NAMES.get(name, name)
        if kind == 'systemd':
            kind = 'systemd/system'
        return self.root / ('usr/lib' if self.vendor else 'etc') / kind / file

    def configuration(self, name: str) -> bool:
        """Return whether a file belongs to administrators once it exists."""
        return '/' not in name


def samples() -> pathlib.Path:
    """Return the folder with the files that are shipped.

    :raises FileNotFoundError: when neither the environment nor the source
        tree has it.
    """
    places = (
        pathlib.Path(sysconfig.get_path('data'), 'share', 'vsched', 'etc'),
        pathlib.Path(__file__).parents[1] / 'etc' / 'vsched',
    )
    for place in places:
        if (place / 'systemd').is_dir():
            return place
    raise FileNotFoundError(
        'the shipped files are in neither of %s'
        % ', '.join(str(one) for one in places)
    )


def names(folder: pathlib.Path, services: Sequence[str]) -> list[str]:
    """Return the names of the files of some services, each once."""
    found: dict[str, None] = {}
    for service in services:
        for pattern in SERVICES[service]:
            for path in sorted(folder.glob(pattern)):
                found[path.relative_to(folder).as_posix()] = None
    return list(found)


def adapted(text: str, commands: pathlib.Path) -> str:
    """Return the text of a file with the commands of another folder."""
    return _COMMANDS.sub(lambda found: str(commands / found.group(1)), text)


def install(
    folder: pathlib.Path,
    services: Sequence[str],
    layout: Layout,
    commands: pathlib.Path,
) -> Iterator[tuple[pathlib.Path, bool]]:
    """Write the files of some services.

    :param folder: with the files that are shipped.
    :param commands: folder of the commands that units call.
    :returns: each file, and whether it was written; configuration that
        exists is not.
    """
    for name in names(folder, services):
        target = layout.target(name)
        if layout.configuration(name) and target.exists():
            yield target, False
            continue
        text = (folder / name).read_text(encoding='utf-8')
        target.parent.mkdir(parents=True, exist_ok=True)
        secret = name.endswith('.conf.sample')
        # Not readable by others at any time.
        descriptor = os.open(
            target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _SECRET
        )
        with open(descriptor, 'w', encoding='utf-8') as file:
            os.fchmod(descriptor, _SECRET if secret else _PUBLIC)
            file.write(adapted(text, commands))
        yield target, True


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    :param argv: the command line, that of the process when None.
    :returns: the exit status.
    """
    parser = argparse.ArgumentParser(
        prog='vsched-install',
        description='Install units, users, folders and configuration samples '
        'of services. Configuration that exists is kept. Nothing is started.',
    )
    parser.add_argument(
        'services',
        nargs='+',
        choices=sorted(SERVICES),
        metavar='SERVICE',
        help='one of %s' % ', '.join(sorted(SERVICES)),
    )
    parser.add_argument(
        '--root',
        type=pathlib.Path,
        default=pathlib.Path('/'),
        metavar='DIR',
        help='directory that stands for /; default /',
    )
    parser.add_argument(
        '--vendor',
        action='store_true',
        help='install below /usr/lib, as a package of a distribution does, '
        'and not below /etc',
    )
    parser.add_argument(
        '--commands',
        type=pathlib.Path,
        # Not resolved: an environment's Python is a link.
        default=pathlib.Path(sys.executable).parent,
        metavar='DIR',
        help='folder of the commands that units call; default that of the '
        'Python that runs this',
    )
    options = parser.parse_args(argv)
    try:
        for path, written in install(
            samples(),
            options.services,
            Layout(options.root, options.vendor),
            options.commands,
        ):
            print('%s: %s' % (path, 'written' if written else 'kept'))
    except OSError as problem:
        print('vsched-install: %s' % problem, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
