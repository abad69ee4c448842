# SPDX-License-Identifier: Apache-2.0

"""Agents that stop, are killed, start again, and are undone."""

import collections
import contextlib
import json
import re
import subprocess
import threading
from unittest import mock

from vsched_agent.privileged import cgroup as privileged_cgroup
from vsched_agent.privileged import sched
from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors
from vsched_lib.contract import messages

Code = errors.Code
State = messages.State


def _threads():
    """Count this process's threads of an agent by name.

    Those of pools have a number: they come with calls, also of the collector,
    and end when idle.
    """
    return collections.Counter(
        thread.name
        for thread in threading.enumerate()
        if re.fullmatch(r'vsched-[a-z-]+', thread.name)
    )


class RestartSuite:
    """For a class with the guests ``promised`` and ``plain``."""

    @contextlib.contextmanager
    def _untouched(self):
        """Nothing is set on any vCPU thread or group meanwhile.

        I/O threads get what they turn out to need, at any time.
        """
        vcpus = {tid for vm in self.vms.values() for tid in vm.vcpu_tids}
        with contextlib.ExitStack() as stack:
            of_threads = [
                stack.enter_context(
                    mock.patch.object(sched, name, wraps=getattr(sched, name))
                )
                for name in ('set_deadline', 'leave_deadline', 'set_affinity')
            ]
            write = stack.enter_context(
                mock.patch.object(
                    privileged_cgroup, 'write', wraps=privileged_cgroup.write
                )
            )
            yield
        self.assertEqual(
            [],
            [
                request
                for setter in of_threads
                for call in setter.call_args_list
                for request in call.args[0]
                if request[0] in vcpus
            ],
        )
        self.assertEqual(
            [],
            [
                (path, text)
                for call in write.call_args_list
                for path, text in call.args[0]
                if '/vcpu' in path
            ],
        )

    def _hold_both(self):
        """One guest by deadline and one by a quota; since when."""
        mark = self.override(self.plain, 4_000, backend='cfs')
        self.agent.await_said(self.plain.uuid, mark, state=State.APPLIED)
        mark = self.override(self.promised, 10_000)
        self.agent.await_said(
            self.promised.uuid,
            mark,
            state=State.APPLIED,
            enforced_runtime_us=10_000,
        )
        self._assert_both_held()
        return {
            vm.uuid: self.collector.said(vm.uuid).since
            for vm in self.vms.values()
        }

    def _assert_both_held(self):
        self.assertEqual([(10_000, 20_000)], self.promised.held())
        self.assertEqual(
            [(4_000, 20_000)] * 2,
            [self.plain.quota(index) for index in range(2)],
        )

    def _taken_up(self, since):
        """Start it: all is told to the collector, and nothing is done."""
        mark = self.collector.mark()
        with self._untouched():
            self.agent.start()
            self.agent.await_passes()
        # A killed one may have left word of its own start.
        self.assertEqual(
            {Code.AGENT_STARTED},
            {one.code for one in self.collector.vcpu_events(mark)},
        )
        self._assert_both_held()
        self.assertEqual(
            {uuid: (State.APPLIED, at) for uuid, at in since.items()},
            {
                uuid: (said.state, said.since)
                for uuid in since
                if (said := self.collector.said(uuid, mark))
            },
        )

    def test_stopped_and_started(self):
        since = self._hold_both()
        threads = _threads()
        self.agent.stop()
        self._assert_both_held()
        self._taken_up(since)
        # One that stops the former server may still be at it.
        self.collector.await_news(
            lambda: not _threads() - threads, 'the end of former threads'
        )

    def _quieten(self):
        """Commands take long to start beside a guest that burns."""
        self.addCleanup(self.plain.set_weight, 1024)
        self.plain.set_weight(20)

    def test_killed(self):
        self._quieten()
        since = self._hold_both()
        self.agent.stop()
        log = self.agent.config_file + '.log'
        with open(log, 'wb') as file:
            process = subprocess.Popen(
                [*self.agent.command, 'run'],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        try:
            self._await_in(
                log, b'agent of %s runs' % (self.agent.host.encode()), process
            )
            # It has looked at its guests by then.
            agent_guests.pause(1.0)
        finally:
            agent_guests.kill_group(process)
        self._assert_both_held()
        self._taken_up(since)

    def _await_in(self, path, words, process):
        for _ in range(int(4 * agent_fixture.PATIENCE_S / 0.1)):
            with open(path, 'rb') as file:
                text = file.read()
            if words in text:
                return
            self.assertIsNone(process.poll(), text[-2000:])
            agent_guests.pause(0.1)
        self.fail(text[-2000:])

    def test_what_changed_while_it_was_away(self):
        self.agent.stop()
        mark = self.collector.mark()
        self.override(self.promised, 4_000)
        # ... and somebody took the thread out of the class.
        (tid,) = self.promised.vcpu_tids
        sched.leave_deadline([(tid, 0, 0, 0, 0)])
        self.agent.start()
        said = self.agent.await_said(
            self.promised.uuid,
            mark,
            state=State.APPLIED,
            enforced_runtime_us=4_000,
        )
        self.assertEqual(messages.Source.OVERRIDE, said.source)
        self.assertEqual([(4_000, 20_000)], self.promised.held())

    def _command(self, *arguments):
        return subprocess.run(
            [*self.agent.command, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=4 * agent_fixture.PATIENCE_S,
        )

    def test_restore(self):
        self._quieten()
        mark = self.override(self.plain, 4_000, backend='cfs')
        self.agent.await_said(self.plain.uuid, mark, state=State.APPLIED)
        # An agent that runs would enforce again what was just undone.
        done = self._command('restore')
        self.assertEqual(1, done.returncode)
        self.assertIn('stop it first', done.stderr)
        self.assertEqual([(12_000, 20_000)], self.promised.held())
        self.agent.stop()
        done = self._command('restore')
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn('2 instances are as they were found', done.stdout)
        for vm in self.vms.values():
            self.assertEqual(self.found[vm.spec.name], vm.found())
        self.agent.start()
        self.collector.await_news(
            lambda: self.promised.held() == [(12_000, 20_000)], 'the promise'
        )

    def test_doctor(self):
        self._quieten()
        done = self._command('doctor', '--json')
        self.assertIn(done.returncode, (0, 1), done.stderr)
        findings = json.loads(done.stdout)
        self.assertTrue(findings)
        self.assertTrue(
            any('2 running instances' in json.dumps(one) for one in findings),
            findings,
        )
        self.assertEqual(
            done.returncode,
            int(any(one['level'] == 'problem' for one in findings)),
        )
        self.assertEqual([(12_000, 20_000)], self.promised.held())
