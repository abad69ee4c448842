# SPDX-License-Identifier: Apache-2.0

import queue
import sys

from oslotest import base

from vsched_agent.profiling import jobs
from vsched_lib.contract import messages

RUN = messages.JobWanted.RUN
CANCEL = messages.JobWanted.CANCEL
State = messages.JobState

_SAY = """
import json, sys
print('not JSON', flush=True)
print(json.dumps({"progress_ppm": 500000, "detail": "half"}), flush=True)
"""
GOOD = (
    _SAY
    + """
print(json.dumps({"progress_ppm": 1000000, "detail": "all"}), flush=True)
"""
)
BAD = (
    _SAY
    + """
sys.exit("it went wrong")
"""
)
#: Ends as a run does that is told to stop, or whose agent is gone.
LONG = (
    _SAY
    + """
import os, signal, threading
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
threading.Thread(target=lambda: (os.read(0, 1), stop.set()),
                 daemon=True).start()
while not stop.wait(0.05):
    pass
sys.exit(3)
"""
)


def order(uuid, wanted=RUN, attempt=1, text=GOOD):
    return messages.JobOrder(
        uuid, messages.JobKind.PROFILE_ERROR, wanted, attempt, {'text': text}
    )


class TestJobs(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.said = queue.Queue()
        self.patch(jobs, '_REPORT_S', 0)
        self.jobs = jobs.Jobs(
            (sys.executable, '-c'), self.words, self.said.put
        )
        self.jobs.start()
        self.addCleanup(self.jobs.stop)

    def words(self, one):
        if one.parameters['text'] is None:
            raise ValueError('no such run')
        return [one.parameters['text']]

    def take(self, *orders):
        self.jobs.take(messages.Jobs(1, orders))

    def until(self, *states):
        while True:
            report = self.said.get(timeout=60)
            if report.state in states:
                return report

    def test_it_runs_and_tells(self):
        self.take(order('a', attempt=2))
        told = []
        while not told or told[-1].state is State.RUNNING:
            told.append(self.said.get(timeout=60))
        self.assertEqual(
            [
                (State.RUNNING, 0),
                (State.RUNNING, 500_000),
                (State.RUNNING, 1_000_000),
                (State.DONE, 1_000_000),
            ],
            [(one.state, one.progress_ppm) for one in told],
        )
        self.assertEqual(
            ('a', 2, 'all'), (told[-1].uuid, told[-1].attempt, told[-1].detail)
        )

    def test_one_that_goes_wrong_says_why(self):
        self.take(order('a', text=BAD))
        report = self.until(State.FAILED)
        self.assertEqual(
            ('it went wrong', 500_000), (report.detail, report.progress_ppm)
        )
        self.take(order('b'))
        self.assertEqual('b', self.until(State.DONE).uuid)

    def test_one_that_can_not_be_begun(self):
        self.take(order('a', text=None))
        self.assertEqual('no such run', self.until(State.FAILED).detail)

    def test_the_same_order_is_carried_out_once(self):
        self.take(order('a'))
        self.until(State.DONE)
        self.take(order('a'), order('b'))
        self.assertEqual('b', self.until(State.DONE).uuid)
        self.take(order('a', attempt=2))
        self.assertEqual(
            ('a', 2), ((report := self.until(State.DONE)).uuid, report.attempt)
        )

    def test_cancelled_while_it_runs(self):
        self.take(order('a', text=LONG))
        self.until(State.RUNNING)
        self.take(order('a', CANCEL, text=LONG))
        self.assertEqual('a', self.until(State.CANCELLED).uuid)

    def test_cancelled_before(self):
        self.take(order('a', CANCEL))
        self.assertEqual(
            ('a', 'not started'),
            ((report := self.until(State.CANCELLED)).uuid, report.detail),
        )

    def test_one_nobody_knows_any_more_is_ended(self):
        self.take(order('a', text=LONG))
        self.until(State.RUNNING)
        self.take(order('b'))
        self.assertEqual('a', self.until(State.CANCELLED).uuid)
        self.assertEqual('b', self.until(State.DONE).uuid)

    def test_one_after_the_other(self):
        self.take(order('a', text=LONG), order('b'))
        self.until(State.RUNNING)
        self.take(order('a', CANCEL, text=LONG), order('b'))
        self.assertEqual(
            ['a', 'b'],
            [self.until(State.CANCELLED, State.DONE).uuid for _ in range(2)],
        )

    def test_an_agent_that_stops_leaves_it_to_the_next(self):
        self.take(order('a', text=LONG))
        self.until(State.RUNNING)
        self.jobs.stop()
        while not self.said.empty():
            self.assertIs(State.RUNNING, self.said.get().state)
