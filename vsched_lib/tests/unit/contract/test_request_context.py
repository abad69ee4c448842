# SPDX-License-Identifier: Apache-2.0

"""Which request a message belongs to."""

import threading

import ddt
from oslotest import base

from vsched_lib.contract import request_context


@ddt.ddt
class TestRequestContext(base.BaseTestCase):
    def of_thread(self, work):
        """What a function returns on a thread without a context."""
        found = []
        thread = threading.Thread(target=lambda: found.append(work()))
        thread.start()
        thread.join()
        return found[0]

    def test_a_thread_without_a_request_has_a_new_id(self):
        first, second = (
            self.of_thread(request_context.outgoing) for _ in range(2)
        )
        self.assertEqual(['request_id'], list(first))
        self.assertNotEqual(first, second)

    def test_what_was_received_is_passed_on(self):
        told = {'request_id': 'req-1', 'user_id': 'ann', 'project_id': 'p-1'}

        def work():
            request_context.incoming(told)
            return request_context.outgoing()

        self.assertEqual(told, self.of_thread(work))

    @ddt.data('a\nb', 'x' * 65, '', 7, None, {'a': 1}, '\u0661')
    def test_what_is_no_id_is_left_out(self, odd):
        def work():
            request_context.incoming(
                {'request_id': 'req-1', 'user_id': odd, 'other': 'x'}
            )
            return request_context.outgoing()

        self.assertEqual({'request_id': 'req-1'}, self.of_thread(work))
