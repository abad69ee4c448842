# SPDX-License-Identifier: Apache-2.0
"""A guest whose agent answers to harm costs the other guests nothing.

The answers come from a program in a real guest, on its own end of the agent's
channel, through QEMU and libvirt.
"""

import os
import subprocess
import sys
import tempfile
import time

import fixtures as base_fixtures
from oslotest import base as test_base

from vsched_agent.ballooning import base
from vsched_agent.hypervisor.libvirt import guest_agent
from vsched_agent.hypervisor import vcpu_channel
from vsched_agent.profiling.guest import commands
from vsched_agent.state import store
from vsched_agent.tests import fixtures
from vsched_agent.tests import guest_calls

#: In the order in which they are sent; the last one for ever. The guest makes
#: the long ones itself: a command line has no room for them.
ANSWERS = (
    """echo '{"return": 1e999}'""",
    """echo '{"return": [{"logical-id": 1e999, "online": true}]}'""",
    """echo '{"return": [{"logical-id": 0, "online": true}, '"""
    """'{"logical-id": 0, "online": false}]}'""",
    """echo '{"return": NaN}'""",
    """awk 'BEGIN { printf "{\\"return\\": "; """
    """for (i = 0; i < 50000; i++) printf "["; """
    """for (i = 0; i < 50000; i++) printf "]"; print "}" }'""",
    """awk 'BEGIN { printf "{\\"return\\": \\""; """
    """for (i = 0; i < 3000000; i++) printf "x"; print "\\"}" }'""",
    """printf '{"return": "\\377\\376"}\\n'""",
    """echo '{"return": 7, "id": "other"}'""",
    """yes x | tr -d '\\n'""",
)

#: What its console has once it answers.
_HOSTILE = b'vsched-test-hostile'
#: Only a hang takes longer, in seconds.
_PATIENCE_S = 120.0
_LIMIT_S = 1500

_SCRIPT = """
number=0
port=/dev/virtio-ports/org.qemu.guest_agent.0
# Until the agent has let go of it.
until (: 3<>$port) 2>/dev/null; do
    sleep 0.1
done
exec 3<>$port
echo vsched-test-hostile >/dev/ttyS0
while read -r line <&3; do
    case "$line" in
        *guest-sync*)
            id=${line##*\\"id\\":}
            echo "{\\"return\\": ${id%%%%\\}*}}" >&3
            continue ;;
    esac
    case $number in
%s
    esac
    number=$((number + 1))
done
"""


class HostileGuestTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        # Longer than a test may take by default: it boots three guests.
        self.useFixture(base_fixtures.Timeout(_LIMIT_S, gentle=True))
        fixtures.require_libvirt(self)
        # The journal tells of them in this order.
        self.uuids = [
            '%d0000000-0000-4000-8000-%012x' % (number, os.getpid())
            for number in range(1, 4)
        ]
        self.guests = [
            self.useFixture(fixtures.Guest(vcpus=2, uuid=uuid))
            for uuid in self.uuids
        ]
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.state_path = os.path.join(folder.name, 'state')
        self.config = os.path.join(folder.name, 'vsched.conf')
        with open(self.config, 'w', encoding='utf-8') as file:
            file.write(
                '[agent]\nstate_path = %s\n[hypervisor]\nuri = %s\n'
                # A guest that answers at all does so sooner.
                '[ballooning]\nguest_timeout = 30\n'
                % (self.state_path, fixtures.URI)
            )
        self.channel = guest_agent.GuestAgentChannel(fixtures.URI)
        self.channel.start()
        self.addCleanup(self.channel.stop)

    def take(self, guest):
        """Leave a guest with one vCPU, as the agent does."""
        with self.open_journal() as book:
            record = base.Record(
                guest.uuid,
                self.pid(guest),
                (0, 1),
                (0,),
                {},
                [],
                'test',
                time.time(),
            )
            book.note_balloon(guest.uuid, record.to_dict())
        self.channel.set_online(guest.uuid, frozenset({0}), _PATIENCE_S)

    def open_journal(self):
        class Closing:
            def __init__(self, path):
                self._book = store.Journal(path)

            def __enter__(self):
                return self._book

            def __exit__(self, *_error):
                self._book.close()

        return Closing(os.path.join(self.state_path, 'agent.sqlite'))

    def pid(self, guest):
        with open(
            '/run/libvirt/qemu/%s.pid' % guest.handle.name(), encoding='ascii'
        ) as file:
            return int(file.read())

    def turn_hostile(self, guest):
        cases = [
            '        %s) %s >&3 ;;'
            % (number if number < len(ANSWERS) - 1 else '*', answer)
            for number, answer in enumerate(ANSWERS)
        ]
        script = _SCRIPT % '\n'.join(cases)
        # What the agent starts would be told to end with it. Whether the shell
        # has ended is not asked: another may answer by then.
        commands.GuestCommand(
            guest.handle,
            [
                '/bin/sh',
                '-c',
                'echo "$0" >/run/hostile; '
                '(sleep 0.5; killall qemu-ga; sleep 0.5; '
                'setsid sh /run/hostile) >/dev/null 2>&1 </dev/null &',
                script,
            ],
        )
        # Until then the agent of the guest would answer.
        give_up = time.monotonic() + _PATIENCE_S
        while _HOSTILE not in guest.running.console():
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.05)

    def test_restore_gives_the_others_vcpus_back(self):
        for guest in self.guests:
            guest_calls.clock_source(guest.handle)
            self.take(guest)
        hostile, *others = self.guests
        self.turn_hostile(hostile)
        seen = []
        for number in range(len(ANSWERS)):
            began = time.monotonic()
            failure = self.assertRaises(
                vcpu_channel.ChannelFailed,
                self.channel.get_vcpus,
                hostile.uuid,
                3.0,
            )
            seen.append('%s: %s' % (type(failure).__name__, failure))
            self.assertLess(time.monotonic() - began, 240.0)
            if number == 4:
                # Another guest is asked as ever in between.
                self.assertEqual(
                    {0},
                    self.channel.get_vcpus(others[0].uuid, _PATIENCE_S).online,
                )
        self.addDetail('seen', _content('\n'.join(seen)))
        found = subprocess.run(
            [
                sys.executable,
                '-P',
                '-m',
                'vsched_agent.cmd.agent',
                '--config-file',
                self.config,
                'restore',
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        self.assertEqual(1, found.returncode, found.stderr)
        self.assertIn(
            'instance %s has vCPUs [0] only' % hostile.uuid, found.stderr
        )
        for guest in others:
            self.assertNotIn(guest.uuid, found.stderr)
            self.assertEqual(
                {0, 1}, self.channel.get_vcpus(guest.uuid, _PATIENCE_S).online
            )
        with self.open_journal() as book:
            self.assertEqual(
                [hostile.uuid],
                [body['instance_uuid'] for body in book.balloons()],
            )


def _content(text):
    from testtools import content

    return content.text_content(text)
