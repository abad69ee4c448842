# SPDX-License-Identifier: Apache-2.0

"""What devstack reads of this tree, and its plugin with doubles."""

import getpass
import os
import pathlib
import re
import subprocess

import fixtures
from oslotest import base

ROOT = pathlib.Path(__file__).resolve().parents[3]

#: Doubles of devstack's functions: each call is a line of the file CALLS.
DOUBLES = r"""
note() { printf '%s\n' "$*" >>"$CALLS"; }
command_not_found_handle() { note "$@"; }
sudo() { "$@"; }
die() { note die "$@"; exit 1; }
define_plugin() { note define_plugin "$@"; }
enable_service() { note enable_service "$@"; }
is_service_enabled() {
    local one
    for one in "$@"; do
        [[ ,$ENABLED, != *,$one,* ]] || return 0
    done
    return 1
}
trueorfalse() { echo "${!2:-$1}"; }
get_python_exec_prefix() { echo "$BIN"; }
database_connection_url() { echo "mysql://$1"; }
iniset() {
    note iniset "$@"
    printf '%s %s %s\n' "$2" "$3" "$4" >>"$1"
}
iniget() {
    note iniget "$@"
    [[ ! -e $1 ]] || sed -n "s/^$2 $3 //p" "$1" | tail -n 1
}
run_process() { ! is_service_enabled "$1" || note run_process "$@"; }
set -eu
source "$VSCHED_DIR/devstack/settings"
phase() {
    note "phase $*"
    source "$VSCHED_DIR/devstack/plugin.sh" "$@"
}
phase stack pre-install
phase stack install
phase stack post-config
# devstack starts nova-compute, with a file of its own, between the two.
echo 'DEFAULT host compute-7' >"$NOVA_CPU_CONF"
phase stack extra
phase unstack ''
phase clean ''
"""
#: Commands that the plugin calls by their paths.
COMMAND = """\
#!/bin/sh
echo "${0##*/} $*" >>"$CALLS"
"""

#: Fetches nothing, with a git that reaches no server.
FETCH = """
set -euo pipefail
say() { echo "$@"; }
source "$ROOT/tools/services/devstack.sh"
ensure_devstack
echo "checkout: $VSCHED_DEVSTACK"
"""
UNREACHABLE = """\
#!/bin/sh
[ "$3" = init ] || { echo no route >&2; exit 1; }
"""


class DevstackTestCase(base.BaseTestCase):
    def test_setup_cfg_names_one_project(self):
        """devstack takes every such line for a name to leave unconstrained."""
        text = (ROOT / 'setup.cfg').read_text()
        self.assertEqual(
            ['vsched'], re.findall(r'^name.*=\s*(.*)$', text, re.MULTILINE)
        )

    def test_the_contracts_of_imports_exist(self):
        text = (ROOT / '.importlinter').read_text()
        self.assertLess(
            10, len(re.findall(r'^\[importlinter:contract:', text, re.M))
        )

    def test_the_plugin_installs_no_uwsgi(self):
        setup = (ROOT / 'setup.cfg').read_text()
        extras = dict(
            re.findall(r'^(\w+) =\n((?:    .*\n)+)', setup, re.MULTILINE)
        )
        self.assertIn('pyuwsgi', extras['uwsgi'])
        library = (ROOT / 'devstack/lib/vsched').read_text()
        for names in re.findall(r'extras\+=\((\w+)\)', library):
            self.assertNotIn('uwsgi', extras[names], names)
            self.assertNotEqual('uwsgi', names)

    def test_a_second_server_is_asked_when_the_first_does_not_answer(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (folder / 'git').write_text(UNREACHABLE)
        (folder / 'git').chmod(0o755)
        done = subprocess.run(
            ('bash', '-c', FETCH),
            env={
                'PATH': '%s:%s' % (folder, os.environ['PATH']),
                'ROOT': str(ROOT),
                'VSCHED_DATA_DIR': str(folder / 'data'),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        told = []
        for server in ('opendev.org', 'github.com'):
            told += [
                'devstack: fetching https://%s/openstack/devstack' % server,
                'devstack: not fetched: no route',
            ]
        self.assertEqual([*told, 'checkout: '], done.stdout.splitlines())
        self.assertEqual([], list((folder / 'data').rglob('functions')))


class PluginTestCase(base.BaseTestCase):
    """The phases, in the order of stack.sh, unstack.sh and clean.sh."""

    def run_phases(self, *services):
        """Return the calls of each phase, with a double of devstack."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        binaries = folder / 'bin'
        binaries.mkdir()
        for name in ('vsched-agent', 'vsched-manage', 'rabbitmqctl', 'uwsgi'):
            (binaries / name).write_text(COMMAND)
            (binaries / name).chmod(0o755)
        calls = folder / 'calls'
        done = subprocess.run(
            ('bash', '-c', DOUBLES),
            env={
                'API_WORKERS': '1',
                'BIN': str(binaries),
                'CALLS': str(calls),
                'DATA_DIR': str(folder / 'data'),
                'DEST': str(folder),
                'ENABLED': ','.join(services),
                'ENABLE_DEBUG_LOG_LEVEL': 'False',
                'NOVA_CONF': str(folder / 'nova.conf'),
                'NOVA_CPU_CONF': str(folder / 'nova-cpu.conf'),
                'NOVA_FILTERS': 'ComputeFilter',
                'PATH': '%s:%s' % (binaries, os.environ['PATH']),
                'PLACEMENT_CONF': str(folder / 'placement.conf'),
                'REGION_NAME': 'RegionOne',
                'SERVICE_HOST': '127.0.0.1',
                'SERVICE_PROTOCOL': 'http',
                'SERVICE_TIMEOUT': '60',
                # An unprivileged user may make folders for itself.
                'STACK_USER': getpass.getuser(),
                'VSCHED_CONF_DIR': str(folder / 'etc'),
                'VSCHED_DIR': str(ROOT),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        for name in ('etc', 'data/vsched'):
            self.assertFalse((folder / name).exists(), name)
        found = {}
        for line in calls.read_text().splitlines():
            if line.startswith('phase '):
                current = found.setdefault(line.removeprefix('phase '), [])
            elif found:
                current.append(line.replace(str(folder), ''))
        return found

    def assert_in_order(self, expressions, calls):
        """Each expression matches a call after that of the one before."""
        rest = iter(calls)
        for one in expressions:
            self.assertTrue(
                any(re.search(one, call) for call in rest),
                '%s in %s' % (one, '\n'.join(calls)),
            )

    def test_a_controller_that_is_a_compute_node(self):
        found = self.run_phases(
            *('vsched-api', 'vsched-collector', 'vsched-agent'),
            *('key', 'mysql', 'rabbit', 'n-sch', 'placement-api'),
        )
        self.assertEqual([], found['stack pre-install'])
        self.assert_in_order(
            (r'^setup_develop \S+ api,mysql,agent$',), found['stack install']
        )
        configured = found['stack post-config']
        self.assert_in_order(
            (
                r'^iniset /etc/vsched.conf database connection mysql://vsched',
                r'^iniset /etc/vsched-agent.conf agent state_path',
                r'^iniset /nova.conf filter_scheduler enabled_filters '
                'ComputeFilter,VschedReservationFilter,',
                r'^create_service_user vsched admin$',
                r'^get_or_create_endpoint vsched RegionOne http://127.0.0.1/',
            ),
            configured,
        )
        # nova-compute has no file yet.
        self.assertEqual([], [one for one in configured if 'iniget' in one])
        self.assert_in_order(
            (
                r'^iniset /etc/vsched-agent.conf agent host compute-7$',
                r'^rpc_backend_add_vhost vsched$',
                r'^vsched-manage .* db sync$',
                r'^vsched-manage master-key create /etc/master.key$',
                r'^vsched-manage .* host-key issue compute-7$',
                r'^run_process vsched-collector ',
                r'^run_process vsched-api /bin/uwsgi ',
                r'^wait_for_service 60 http://127.0.0.1/vsched/readiness$',
                r'^run_process vsched-agent .* run  root$',
            ),
            found['stack extra'],
        )
        self.assert_in_order(
            (
                r'^stop_process vsched-agent$',
                r'^vsched-agent .* restore$',
                r'^vsched-agent .* placement remove$',
            ),
            found['unstack '],
        )
        # With all queues in it.
        self.assert_in_order(
            (r'^rabbitmqctl delete_vhost vsched$',), found['clean ']
        )

    def test_a_compute_node(self):
        found = self.run_phases('vsched-agent')
        self.assert_in_order(
            (r'^setup_develop \S+ agent$',), found['stack install']
        )
        calls = [one for calls in found.values() for one in calls]
        for one in (
            'create_service_user',
            'db sync',
            'delete_vhost',
            'master-key',
            'nova.conf',
            'run_process vsched-api',
            'run_process vsched-collector',
        ):
            self.assertEqual([], [call for call in calls if one in call])
        self.assert_in_order(
            (
                r'^iniset /etc/vsched-agent.conf agent host compute-7$',
                r'^run_process vsched-agent ',
            ),
            found['stack extra'],
        )

    def test_nothing_where_nothing_is_enabled(self):
        self.assertEqual(
            [], [one for calls in self.run_phases().values() for one in calls]
        )
