# SPDX-License-Identifier: Apache-2.0

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_agent.hypervisor.xen import vcpu_ids

#: The kernel's highest number of a thread.
_PID_MAX_LIMIT = 1 << 22


class TestNumbers(base.BaseTestCase):
    @hypothesis.given(
        st.integers(1, vcpu_ids.MAX_DOMID),
        st.integers(0, vcpu_ids.MAX_VCPUS - 1),
    )
    def test_both_ways(self, domid, index):
        number = vcpu_ids.encode(domid, index)
        self.assertGreater(number, _PID_MAX_LIMIT)
        self.assertLess(number, 1 << 31)
        self.assertEqual((domid, index), vcpu_ids.decode(number))

    def test_out_of_range(self):
        for domid, index in ((0, 0), (-1, 0), (0x7FF0, 0), (1, -1), (1, 8192)):
            self.assertRaises(ValueError, vcpu_ids.encode, domid, index)

    @hypothesis.given(st.integers(-(1 << 40), _PID_MAX_LIMIT))
    def test_threads_are_none(self, tid):
        self.assertRaises(ValueError, vcpu_ids.decode, tid)
