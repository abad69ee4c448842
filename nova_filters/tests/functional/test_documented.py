# SPDX-License-Identifier: Apache-2.0

"""Snippets of nova.conf in the documentation, and what devstack writes."""

from collections.abc import Iterator
import os
import pathlib
import re
import subprocess
import textwrap
import typing as ty

from oslo_config import cfg

from nova_filters.tests.functional import nova_case

if nova_case.MISSING is None:
    from nova.conf import scheduler as nova_options
    from nova.scheduler import filters as nova_filter_classes
    from nova.scheduler import weights as nova_weights

    from nova_filters import filters
    from nova_filters import weighers

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_FOLDERS = (
    'doc/source',
    'etc',
    'nova_filters',
    'devstack',
    'releasenotes',
    'README.rst',
    'api-ref/source',
)
_TEXTS = frozenset({'.rst', '.py', '.yaml', '.sample', '.md', '.txt', '.conf'})
_GROUP = re.compile(r'^( *)\[filter_scheduler\] *$', re.MULTILINE)
_OPTION = re.compile(
    r'^ *(weight_classes|available_filters|enabled_filters)'
    r' *=',
    re.MULTILINE,
)

#: devstack's functions, as far as the plugin uses them for nova.conf.
_DEVSTACK = """
set -eu
define_plugin() { :; }
enable_service() { :; }
trueorfalse() { echo "$1"; }
is_service_enabled() { true; }
iniset() { printf '[%s]\\n%s = %s\\n' "$2" "$3" "$4" >>"$1"; }
iniset_multiline() {
    local file=$1 section=$2 option=$3 value
    shift 3
    for value; do iniset "$file" "$section" "$option" "$value"; done
}
configure_keystoneauth() { :; }
source "$VSCHED_DIR/devstack/settings"
source "$VSCHED_DIR/devstack/lib/vsched"
configure_vsched_nova
"""


def _files() -> Iterator[pathlib.Path]:
    for name in _FOLDERS:
        path = _ROOT / name
        for one in sorted(path.rglob('*')) if path.is_dir() else [path]:
            if one.suffix in _TEXTS and 'tests' not in one.parts:
                yield one


def _snippets() -> Iterator[tuple[str, str]]:
    """Yield where each section [filter_scheduler] is, and its text."""
    for path in _files():
        text = path.read_text(encoding='utf-8')
        for found in _GROUP.finditer(text):
            lines = [found[0]]
            for line in text[found.end() + 1 :].splitlines():
                if (
                    not line.startswith(found[1])
                    or not line.strip()
                    or (line.strip().startswith(('[', '"""')))
                ):
                    break
                lines.append(line)
            body = textwrap.dedent('\n'.join(lines)) + '\n'
            if _OPTION.search(body):
                yield (
                    '%s:%d'
                    % (
                        path.relative_to(_ROOT),
                        text.count('\n', 0, found.start()) + 1,
                    ),
                    body,
                )


class TestDocumented(nova_case.NovaCase):
    """Read with Nova's own options, and loaded as nova-scheduler does."""

    def options(self, text: str) -> ty.Any:
        path = pathlib.Path(self.create_tempfiles([('nova', text)])[0])
        conf = cfg.ConfigOpts()
        nova_options.register_opts(conf)
        conf([], default_config_files=[str(path)], default_config_dirs=[])
        return conf.filter_scheduler

    def check_weighers(self, where: str, options: ty.Any) -> None:
        loaded = nova_weights.HostWeightHandler().get_matching_classes(
            options.weight_classes
        )
        own = nova_weights.all_weighers()
        self.assertGreater(len(own), 5)
        for expected in (*own, *weighers.all_weighers()):
            self.assertIn(expected, loaded, where)

    def check_filters(self, where: str, options: ty.Any) -> None:
        loaded = nova_filter_classes.HostFilterHandler().get_matching_classes(
            options.available_filters
        )
        own = nova_filter_classes.all_filters()
        for expected in (*own, *filters.all_filters()):
            self.assertIn(expected, loaded, where)
        enabled = set(options.enabled_filters) - {'...'}
        self.assertEqual(
            set(), enabled - {one.__name__ for one in loaded}, where
        )
        self.assertEqual(
            set(),
            {one.__name__ for one in filters.all_filters()} - enabled,
            where,
        )

    def test_every_snippet(self) -> None:
        seen = set()
        for where, text in _snippets():
            options = self.options(text)
            for found in _OPTION.finditer(text):
                seen.add(found[1])
            if 'weight_classes' in text:
                self.check_weighers(where, options)
            if 'enabled_filters' in text:
                self.check_filters(where, options)
        self.assertEqual(
            {'weight_classes', 'available_filters', 'enabled_filters'}, seen
        )

    def test_no_mention_outside_a_snippet(self) -> None:
        """An assignment that no snippet has would not be checked."""
        within = '\n'.join(text for _, text in _snippets())
        for path in _files():
            for found in re.finditer(
                r'^ *(weight_classes *=.*)$',
                path.read_text(encoding='utf-8'),
                re.MULTILINE,
            ):
                self.assertIn(found[1], within, str(path))

    def test_what_devstack_writes(self) -> None:
        path = self.create_tempfiles([('nova', '')])[0]
        subprocess.run(
            ['bash', '-c', _DEVSTACK],
            check=True,
            env={
                'PATH': os.environ['PATH'],
                'VSCHED_DIR': str(_ROOT),
                'NOVA_CONF': path,
                'NOVA_FILTERS': 'ComputeFilter',
                'VSCHED_AUTH_STRATEGY': 'noauth',
                'DATA_DIR': '/nowhere',
                'VSCHED_API_LISTEN': '127.0.0.1:1',
                'DEST': '/nowhere',
                'SERVICE_HOST': '127.0.0.1',
                'SERVICE_PROTOCOL': 'http',
                'REGION_NAME': 'RegionOne',
            },
        )
        options = self.options(pathlib.Path(path).read_text(encoding='utf-8'))
        self.check_weighers('devstack', options)
        self.check_filters('devstack', options)
