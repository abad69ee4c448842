# SPDX-License-Identifier: Apache-2.0

import functools
import os
import threading

from oslotest import base
import requests

from vsched_standalone import http_server


class TestHttpServer(base.BaseTestCase):
    """Requests that are answered when the server stops."""

    def setUp(self):
        super().setUp()
        self.began, self.may_end = threading.Event(), threading.Event()
        self.addCleanup(self.may_end.set)
        self.server = http_server.HttpServer(
            self.answer, '127.0.0.1', 0, threads=2
        )
        # Only a hang takes longer than this for an answer.
        dispatcher = self.server._server.task_dispatcher
        dispatcher.shutdown = functools.partial(
            dispatcher.shutdown, timeout=60
        )
        self.url = 'http://127.0.0.1:%d/' % self.server.port
        self.answers = []

    def answer(self, environ, start_response):
        if environ['PATH_INFO'] == '/slow':
            self.began.set()
            self.may_end.wait()
        start_response('200 OK', [('Content-Length', '2')])
        return [b'ok']

    def request_slowly(self):
        self.answers.append(requests.get(self.url + 'slow', timeout=60).text)

    def in_background(self, function):
        thread = threading.Thread(target=function)
        thread.start()
        self.addCleanup(thread.join)
        return thread

    def test_what_is_in_progress_is_answered(self):
        self.server.start()
        asking = self.in_background(self.request_slowly)
        self.began.wait()
        stopping = self.in_background(self.server.stop)
        self.may_end.set()
        asking.join()
        stopping.join()
        self.assertEqual(['ok'], self.answers)

    def test_no_thread_and_no_file_is_left(self):
        self.server.start()
        session = requests.Session()
        self.addCleanup(session.close)
        self.assertEqual('ok', session.get(self.url, timeout=60).text)
        # The connection is still open, with nothing to answer.
        self.server.stop()
        self.assertFalse(self.server._thread.is_alive())
        self.assertRaises(
            requests.ConnectionError, session.get, self.url, timeout=60
        )

    def test_a_request_ends_while_the_server_stops(self):
        """It wakes the thread, which has the sockets to close already."""
        self.server.start()
        trigger, thread = self.server._server.trigger, self.server._thread
        pull = trigger._physical_pull

        def pull_after_a_request():
            pull()
            # Long enough to close the pipe, if it does not wait.
            thread.join(1)
            pull()

        trigger._physical_pull = pull_after_a_request
        self.server.stop()
        self.assertFalse(thread.is_alive())

    def test_no_other_file_is_written_to(self):
        self.server.start()
        trigger = self.server._server.trigger.trigger
        self.in_background(self.ignore_the_answer)
        self.began.wait()
        # The request takes longer than the server waits.
        self.server._server.task_dispatcher.shutdown = lambda: None
        self.server.stop()
        # A file that has the number of the pipe now.
        reading, writing = os.pipe()
        self.addCleanup(os.close, reading)
        os.dup2(writing, trigger)
        if writing != trigger:
            os.close(writing)
        self.may_end.set()
        self.wait_for_workers()
        os.close(trigger)
        self.assertEqual(b'', os.read(reading, 1))

    def ignore_the_answer(self):
        try:
            self.request_slowly()
        except requests.RequestException:
            pass

    def wait_for_workers(self):
        self.server._server.task_dispatcher.set_thread_count(0)
        for thread in threading.enumerate():
            if thread.name.startswith('waitress-'):
                thread.join()

    def test_one_that_was_not_started(self):
        self.server.stop()
        self.assertRaises(
            requests.ConnectionError, requests.get, self.url, timeout=60
        )
