# SPDX-License-Identifier: Apache-2.0

"""Figures of executions."""

from oslotest import base

from vsched_lib.contract import messages
from vsched_lib.contract import wire
from vsched_lib.model import executions

COUNTS = {
    'wait_us': 30_000,
    'direct_wait_us': 6_000,
    'executions': 1_000,
    'wakeups': 400,
    'net_rx_packets': 500,
    'net_tx_packets': 450,
    'disk_read_requests': 30,
    'disk_write_requests': 20,
    'emulator_wakeups': 300,
    'emulator_wait_us': 5_000,
    'iothread_wakeups': 90,
    'iothread_wait_us': 900,
    'vhost_wakeups': 0,
    'vhost_wait_us': 0,
}


class TestExecutions(base.BaseTestCase):
    def test_figures(self):
        self.assertEqual(
            {
                'executions_per_s': 2000.0,
                'io_per_execution': 1.0,
                'wait_per_execution_us': 30.0,
                'wakeups_per_s': 800.0,
                'io_per_wakeup': 2.5,
                'wait_per_wakeup_us': 15.0,
                'emulator_wakeups_per_s': 600.0,
                'emulator_wait_per_wakeup_us': 16.667,
                'iothread_wakeups_per_s': 180.0,
                'iothread_wait_per_wakeup_us': 10.0,
                'vhost_wakeups_per_s': 0.0,
                # It never ran.
                'vhost_wait_per_wakeup_us': None,
            },
            executions.figures(COUNTS, 500_000),
        )

    def test_what_is_unknown(self):
        found = executions.figures(
            COUNTS | dict.fromkeys(executions.COUNTS), 500_000
        )
        self.assertEqual(
            {
                'wakeups_per_s': 800.0,
                'io_per_wakeup': 2.5,
                'wait_per_wakeup_us': 15.0,
            },
            {
                name: value
                for name, value in found.items()
                if value is not None
            },
        )
        self.assertEqual(executions.FIGURES, tuple(found))

    def test_an_idle_instance(self):
        found = executions.figures(dict.fromkeys(COUNTS, 0), 1_000_000)
        self.assertEqual(0.0, found['executions_per_s'])
        self.assertIsNone(found['io_per_execution'])
        self.assertIsNone(found['wait_per_execution_us'])

    def test_no_time(self):
        self.assertIsNone(executions.figures(COUNTS, 0)['executions_per_s'])

    def test_the_largest_sums(self):
        # Sums in the database are bounded by 64 bits.
        self.assertEqual(
            float(2**63 - 1) * 1e6, executions.per_second(2**63 - 1, 1)
        )

    def test_counts_are_those_of_samples(self):
        sample = messages.UsageSample('u', 1.0, 1, 1, 1)
        for name in executions.IO:
            self.assertEqual(0, getattr(sample, name))
        self.assertIsNone(sample.executions)

    def test_counts_by_name(self):
        counts = executions.Counts(7, 6, 5, 4, 3, 2, 1)
        self.assertEqual(counts._asdict(), executions.by_name(counts))
        # A newer release appends some.
        self.assertEqual(counts._asdict(), executions.by_name((*counts, 9)))
        self.assertEqual(
            dict.fromkeys(executions.COUNTS), executions.by_name(None)
        )

    def test_counts_in_messages(self):
        counts = executions.Counts(7, 6, 5, 4, 3, 2, 1)
        sample = messages.UsageSample(
            '11111111-1111-4111-8111-111111111111',
            1.0,
            1,
            1,
            1,
            executions=counts,
        )
        raw = sample.to_dict()
        self.assertEqual(list(counts), raw['executions'])
        self.assertEqual(sample, messages.UsageSample.from_dict(raw))
        newer = raw | {'executions': [*counts, 9]}
        self.assertEqual(
            (*counts, 9), messages.UsageSample.from_dict(newer).executions
        )
        # An agent of the release before.
        del raw['executions']
        self.assertIsNone(messages.UsageSample.from_dict(raw).executions)
        for wrong in ([1, 2], [0] * 17, [-1] + [0] * 6, [1.5] + [0] * 6, 7):
            self.assertRaises(
                wire.MalformedMessage,
                messages.UsageSample.from_dict,
                raw | {'executions': wrong},
            )
