# SPDX-License-Identifier: Apache-2.0

"""``devstack/local.conf.sample``, as far as it is decided without devstack.

devstack splits such a file into sections, each with a group and a file. That
of ``local`` and ``localrc`` is sourced by the shell before the plugin's
settings. Those of ``post-config`` are options of files whose names the shell
expands once the plugin has written them.

An example is a line with a ``#`` and no blank after it. It has to be good as
well once it is one no more.
"""

import pathlib
import re
import subprocess

import fixtures
from oslotest import base

ROOT = pathlib.Path(__file__).resolve().parents[3]
DEVSTACK = ROOT / 'devstack'
SAMPLES = ROOT / 'etc' / 'vsched'

#: devstack takes the first word of the line, without its brackets.
HEADER = re.compile(r'\[\[([\w-]+)\|([^\s|\]]+)\]\]')
#: What stack.sh asks for where it is not set.
PASSWORDS = (
    'ADMIN_PASSWORD',
    'DATABASE_PASSWORD',
    'RABBIT_PASSWORD',
    'SERVICE_PASSWORD',
)
#: Files of ours, by the variable that names them.
OURS = {
    'VSCHED_AGENT_CONF': 'vsched-agent.conf.sample',
    'VSCHED_CONF': 'vsched-api.conf.sample',
}

#: Sources what devstack sources, in its order, with doubles of its functions.
#: Prints their calls, and variables that are named.
SOURCE = r"""
set -eu
note() { printf '%s\n' "$*"; }
for name in define_plugin disable_service enable_plugin enable_service; do
    eval "$name() { note $name \"\$@\"; }"
done
trueorfalse() { echo "${!2:-$1}"; }
DEST=/opt/stack
DATA_DIR=$DEST/data
source "$1"
source "$2"
shift 2
for name in "$@"; do
    note "$name=${!name}"
done
"""


def sample(examples):
    """Return the sample.

    :param examples: whether its examples are in use.
    """
    text = (DEVSTACK / 'local.conf.sample').read_text()
    if examples:
        text = re.sub(r'^#(?=[^\s#])', '', text, flags=re.MULTILINE)
    return text


def sections(text):
    """Return group, file and lines of each section; comments are left out.

    What is before the first has neither group nor file.
    """
    found = [(None, None, [])]
    for line in text.splitlines():
        if line.startswith('[['):
            header = HEADER.fullmatch(line)
            if header is None:
                raise ValueError(line)
            found.append((*header.groups(), []))
        elif line.strip() and not line.startswith('#'):
            found[-1][2].append(line)
    return found


def options(lines):
    """Yield the section, name and value of each option."""
    section = None
    for line in lines:
        header = re.fullmatch(r'\[(\w+)\]', line)
        if header is not None:
            section = header[1]
            continue
        name, equals, value = line.partition('=')
        if section is None or not equals:
            raise ValueError(line)
        yield section, name.strip(), value.strip()


def known(name):
    """Return the sections and names of the options in a sample of ours."""
    found, section = set(), None
    for line in (SAMPLES / name).read_text().splitlines():
        header = re.fullmatch(r'\[(\w+)\]', line)
        if header is not None:
            section = header[1]
        option = re.match(r'#(\w+) =', line)
        if option is not None:
            found.add((section, option[1]))
    return found


class LocalConfTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.settings = (DEVSTACK / 'settings').read_text()
        self.plugin = ''.join(
            (DEVSTACK / name).read_text()
            for name in ('plugin.sh', 'lib/vsched')
        )

    def localrc(self, examples):
        """Return the lines that the shell runs."""
        (lines,) = (
            lines
            for group, file, lines in sections(sample(examples))
            if (group, file) == ('local', 'localrc')
        )
        return lines

    def assigned(self, examples):
        """Return the names of the variables in these lines."""
        return [
            found[1]
            for line in self.localrc(examples)
            if (found := re.match(r'(\w+)=', line))
        ]

    def sourced(self, lines, *names):
        """Return calls, and the values of variables, after the settings."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        localrc = folder / 'localrc'
        localrc.write_text('\n'.join([*lines, '']))
        done = subprocess.run(
            (
                *('bash', '-c', SOURCE, 'bash', str(localrc)),
                *(str(DEVSTACK / 'settings'), *names),
            ),
            # None of those that the lines set, or that settings have.
            env={},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        printed = done.stdout.splitlines()
        calls = printed[: len(printed) - len(names)]
        values = dict(one.split('=', 1) for one in printed[len(calls) :])
        self.assertEqual(sorted(names), sorted(values))
        return [call.split() for call in calls], values

    def test_sections(self):
        for examples, expected in (
            (False, []),
            (
                True,
                [
                    ('post-config', '$NOVA_CPU_CONF'),
                    ('post-config', '$VSCHED_AGENT_CONF'),
                ],
            ),
        ):
            before, *found = sections(sample(examples))
            # devstack reads nothing there.
            self.assertEqual([], before[2])
            self.assertEqual(
                [('local', 'localrc'), *expected],
                [(group, file) for group, file, _ in found],
            )
            for _, file, lines in found:
                self.assertTrue(lines, file)

    def test_each_line_of_the_shell_is_one_that_devstack_knows(self):
        for line in self.localrc(examples=True):
            self.assertRegex(
                line, r'^([A-Z_]+=\S+|(enable_plugin|disable_service) .+)$'
            )
        names = self.assigned(examples=True)
        self.assertEqual(len(names), len(set(names)))

    def test_all_passwords_are_set_by_one_line(self):
        self.assertEqual(
            set(PASSWORDS),
            {
                name
                for name in self.assigned(examples=False)
                if not name.startswith('VSCHED_')
            },
        )
        _, values = self.sourced(self.localrc(examples=False), *PASSWORDS)
        self.assertEqual(1, len(set(values.values())), values)
        self.assertTrue(values['ADMIN_PASSWORD'])

    def test_settings_keep_each_variable(self):
        names = [
            name
            for name in self.assigned(examples=True)
            if name.startswith('VSCHED_')
        ]
        self.assertTrue(names)
        # One that settings would otherwise have another value for.
        lines = ['%s=other' % name for name in names]
        _, values = self.sourced(lines, *names)
        self.assertEqual(dict.fromkeys(names, 'other'), values)
        for name in names:
            self.assertRegex(self.settings, r'(?m)^%s=' % name)
            self.assertRegex(self.plugin, r'\$%s\b' % name)

    def test_examples_of_variables_are_the_defaults(self):
        names = sorted(
            {*self.assigned(examples=True)} - {*self.assigned(examples=False)}
        )
        self.assertTrue(names)
        _, defaults = self.sourced([], *names)
        _, values = self.sourced(self.localrc(examples=True), *names)
        self.assertEqual(defaults, values)

    def test_the_reserve_is_one_that_the_agent_accepts(self):
        self.assertIn(
            ('agent', 'reserve_mcpu'), known(OURS['VSCHED_AGENT_CONF'])
        )
        _, values = self.sourced(
            self.localrc(examples=True), 'VSCHED_RESERVE_MCPU'
        )
        self.assertRegex(values['VSCHED_RESERVE_MCPU'], '^[0-9]+$')

    def test_the_plugin_is_this_one(self):
        calls, values = self.sourced(
            self.localrc(examples=False), 'DEST', 'VSCHED_DIR'
        )
        ((_, name, url),) = (
            call for call in calls if call[0] == 'enable_plugin'
        )
        self.assertIn(['define_plugin', name], calls)
        # Where devstack clones it.
        self.assertEqual(
            '%s/%s' % (values['DEST'], name), values['VSCHED_DIR']
        )
        self.assertRegex(url, '^https://[a-z.]+/openstack/%s$' % name)
        # As the guide has it.
        self.assertIn(
            'enable_plugin %s %s\n' % (name, url),
            (DEVSTACK / 'README.rst').read_text(),
        )

    def test_no_service_is_disabled_that_the_plugin_uses(self):
        calls, _ = self.sourced(self.localrc(examples=False))
        used = {
            service
            for services in re.findall(
                r'is_service_enabled((?: [a-z][\w-]*)+)', self.plugin
            )
            for service in services.split()
        }
        self.assertLessEqual({'key', 'n-sch', 'rabbit', 'vsched-api'}, used)
        for name, *services in calls:
            if name == 'disable_service':
                self.assertTrue(services)
                self.assertEqual(set(), used & {*services})

    def test_options_exist(self):
        for group, file, lines in sections(sample(examples=True)):
            if group != 'post-config':
                continue
            name = file.removeprefix('$')
            self.assertNotEqual(name, file)
            self.assertRegex(self.plugin, r'\$%s\b' % name)
            found = list(options(lines))
            self.assertTrue(found, file)
            for section, option, value in found:
                self.assertTrue(value, option)
                if name in OURS:
                    self.assertIn((section, option), known(OURS[name]))
                else:
                    # An option of Nova, which the plugin takes over.
                    self.assertIn(
                        'iniget "%s" %s %s)' % (file, section, option),
                        self.plugin,
                    )

    def test_what_is_no_section(self):
        for text in (
            '[[post-config|$NOVA_CONF]',
            '[[post-config $NOVA_CONF]]',
            '[[post-config|$NOVA_CONF]] # comment',
            '[[|localrc]]',
        ):
            self.assertRaises(ValueError, sections, text)
        self.assertRaises(ValueError, list, options(['name = value']))
        self.assertRaises(ValueError, list, options(['[agent]', 'name']))
