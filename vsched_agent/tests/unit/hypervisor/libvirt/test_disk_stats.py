# SPDX-License-Identifier: Apache-2.0

"""Counters of disks out of what libvirt tells."""

from unittest import mock

from oslotest import base as test_base

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import calls as libvirt_calls
from vsched_agent.hypervisor.libvirt import disk_stats
from vsched_lib import bounded_calls


class ReadTest(test_base.BaseTestCase):
    def test_every_disk(self):
        self.assertEqual(
            {'vda': base.DiskCounters(3, 4), 'vdb': base.DiskCounters(0, 1)},
            disk_stats.read(
                {
                    'block.count': 2,
                    'block.0.name': 'vda',
                    'block.0.rd.reqs': 3,
                    'block.0.wr.reqs': 4,
                    'block.0.rd.bytes': 999,
                    'block.1.name': 'vdb',
                    'block.1.rd.reqs': 0,
                    'block.1.wr.reqs': 1,
                }
            ),
        )

    def test_what_has_no_figures(self):
        self.assertEqual({}, disk_stats.read({}))
        self.assertEqual(
            {},
            disk_stats.read(
                {
                    'block.count': 1,
                    'block.0.name': 'sda',
                    'block.0.allocation': 0,
                }
            ),
        )


class AskTest(test_base.BaseTestCase):
    def test_a_call_that_hangs_is_not_made_again(self):
        calls = libvirt_calls.LibvirtCalls('uri', 1, mock.Mock())
        self.addCleanup(calls.close)
        connection = mock.Mock()
        connection.listAllDomains.return_value = []
        keys = []

        def run(key, timeout_s, function):
            keys.append(key)
            if key == ('disks', 0):
                overdue.add(key)
                raise bounded_calls.CallTimedOut('late')
            return function()

        overdue = set()
        with (
            mock.patch.object(bounded_calls.BoundedCalls, 'overdue', overdue),
            mock.patch.object(calls.bounded, 'run', run),
        ):
            self.assertRaises(
                base.HypervisorUnavailable,
                disk_stats.read_counters,
                calls,
                connection,
                ('u',),
            )
            self.assertEqual(
                {}, disk_stats.read_counters(calls, connection, ('u',))
            )
        self.assertEqual([('disks', 0), ('disks', 1)], keys)
