# SPDX-License-Identifier: Apache-2.0

"""The table of extra specs and what its reader makes of any text."""

from decimal import Decimal

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import spec_values
from vsched_lib.model import reservation
from vsched_lib.tests import strategies

#: Something wrong: the extra specs without the namespace, the keys blamed.
BAD = (
    # Numbers
    ({'cpu_runtime_us': '-1'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '+5000'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '0'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '1'}, ['cpu_runtime_us']),
    (
        {'cpu_runtime_us': '4194305', 'cpu_period_us': '4194304'},
        ['cpu_runtime_us'],
    ),
    ({'cpu_runtime_us': str(2**63)}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '9' * 5000}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': ''}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': ' 5000'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '5000\n'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '5_000'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '5000.0'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '5e3'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '0x1388'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '5 ms'}, ['cpu_runtime_us']),
    # Digits of another script, and full-width ones.
    ({'cpu_runtime_us': '\u0665\u0660\u0660\u0660'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '\uff15\uff10\uff10\uff10'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '5000\x00'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '5000', 'cpu_period_us': '99'}, ['cpu_period_us']),
    ({'cpu_runtime_us': '5000', 'cpu_period_us': 'NaN'}, ['cpu_period_us']),
    ({'net_rx_pps': '-1'}, ['net_rx_pps']),
    ({'disk_write_iops': '100000001'}, ['disk_write_iops']),
    ({'weight': '0'}, ['weight']),
    ({'balloon': 'auto', 'min_vcpus': '1025'}, ['min_vcpus']),
    # Not text at all
    ({'cpu_runtime_us': 5000}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': None}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': True}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': ['5000']}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '5000', 'comm_aware': True}, ['comm_aware']),
    # Words
    ({'cpu_runtime_us': '5000', 'cpu_mode': 'Capped'}, ['cpu_mode']),
    ({'cpu_runtime_us': '5000', 'cpu_mode': ''}, ['cpu_mode']),
    ({'cpu_runtime_us': '5000', 'backend': 'rt'}, ['backend']),
    ({'cpu_runtime_us': '5000', 'backend': 'd\u0435adline'}, ['backend']),
    ({'cpu_runtime_us': '5000', 'io_charging': 'yes'}, ['io_charging']),
    ({'cpu_runtime_us': '5000', 'comm_aware': 'yes'}, ['comm_aware']),
    ({'cpu_runtime_us': '5000', 'comm_aware': '1'}, ['comm_aware']),
    ({'balloon': 'on'}, ['balloon']),
    ({'workload_class': 'b'}, ['workload_class']),
    # Decimals
    (
        {'cpu_runtime_us': '5000', 'max_alloc_error_pct': '0'},
        ['max_alloc_error_pct'],
    ),
    (
        {'cpu_runtime_us': '5000', 'max_alloc_error_pct': '100.1'},
        ['max_alloc_error_pct'],
    ),
    (
        {'cpu_runtime_us': '5000', 'max_alloc_error_pct': '.5'},
        ['max_alloc_error_pct'],
    ),
    (
        {'cpu_runtime_us': '5000', 'max_alloc_error_pct': '1e1'},
        ['max_alloc_error_pct'],
    ),
    (
        {'cpu_runtime_us': '5000', 'max_alloc_error_pct': 'Infinity'},
        ['max_alloc_error_pct'],
    ),
    # Unknown keys
    ({'cpu_runtime': '5000'}, ['cpu_runtime']),
    ({'CPU_RUNTIME_US': '5000'}, ['CPU_RUNTIME_US']),
    ({'': 'x'}, ['']),
    ({'cpu_runtime_us ': '5000'}, ['cpu_runtime_us ']),
    ({'cpu:runtime_us': '5000'}, ['cpu:runtime_us']),
    # Keys that need or contradict each other
    ({'cpu_period_us': '20000'}, ['cpu_period_us']),
    ({'cpu_mode': 'capped', 'backend': 'cfs'}, ['backend', 'cpu_mode']),
    ({'min_vcpus': '2'}, ['min_vcpus']),
    ({'balloon': 'off', 'min_vcpus': '2'}, ['min_vcpus']),
    ({'cpu_runtime_us': '20001'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '5001', 'cpu_period_us': '5000'}, ['cpu_runtime_us']),
    ({'cpu_runtime_us': '500', 'backend': 'cfs'}, ['backend']),
    (
        {
            'cpu_runtime_us': '5000',
            'cpu_period_us': '2000000',
            'backend': 'cfs',
        },
        ['backend'],
    ),
    (
        {
            'cpu_runtime_us': '5000',
            'backend': 'cfs',
            'cpu_mode': 'work_conserving',
        },
        ['backend'],
    ),
    # Everything at once: every problem is named.
    (
        {'cpu_runtime_us': 'x', 'cpu_period_us': 'y', 'colour': 'red'},
        ['colour', 'cpu_period_us', 'cpu_runtime_us'],
    ),
)


def full(specs):
    return {spec_values.PREFIX + key: text for key, text in specs.items()}


class ParseTestCase(base.BaseTestCase):
    def test_none_of_ours(self):
        found = extra_specs.parse(
            {
                'hw:cpu_policy': 'dedicated',
                'vsched': '1',
                'Vsched:x': '2',
                'trait:CUSTOM_X': 'required',
            }
        )
        self.assertIsNone(found.reservation)
        self.assertEqual(set(extra_specs.TABLE), set(found.values))

    def test_reservation_with_defaults(self):
        found = extra_specs.parse(full({'cpu_runtime_us': '12000'}))
        self.assertEqual(
            reservation.Reservation(12_000, 20_000), found.reservation
        )
        self.assertEqual('auto', found.values['io_charging'])
        self.assertIs(True, found.values['comm_aware'])
        self.assertIsNone(found.values['net_rx_pps'])

    def test_every_key(self):
        found = extra_specs.parse(
            full(
                {
                    'cpu_runtime_us': '5000',
                    'cpu_period_us': '10000',
                    'cpu_mode': 'work_conserving',
                    'backend': 'deadline',
                    'io_charging': 'charge',
                    'net_rx_pps': '0',
                    'net_tx_pps': '100000000',
                    'disk_read_iops': '1',
                    'disk_write_iops': '2',
                    'max_alloc_error_pct': '2.5',
                    'balloon': 'auto',
                    'min_vcpus': '2',
                    'weight': '512',
                    'comm_aware': 'False',
                    'workload_class': 'web',
                }
            )
        )
        self.assertEqual(
            reservation.Reservation(
                5_000,
                10_000,
                reservation.Mode.WORK_CONSERVING,
                reservation.Backend.DEADLINE,
            ),
            found.reservation,
        )
        self.assertEqual(Decimal('2.5'), found.values['max_alloc_error_pct'])
        self.assertEqual(0, found.values['net_rx_pps'])
        self.assertIs(False, found.values['comm_aware'])
        self.assertNotIn(None, found.values.values())

    def test_ballooning_needs_no_reservation(self):
        found = extra_specs.parse(full({'balloon': 'auto'}))
        self.assertIsNone(found.reservation)
        self.assertEqual(1, found.values['min_vcpus'])

    def test_bad_sets(self):
        self.assertGreater(len(BAD), 40)
        for specs, blamed in BAD:
            error = self.assertRaises(
                errors.InvalidExtraSpecs, extra_specs.parse, full(specs)
            )
            self.assertEqual(
                [spec_values.PREFIX + key for key in blamed],
                [key for key, _ in error.problems],
                specs,
            )
            # One line of plain text that fits an event.
            self.assertTrue(error.detail.isascii(), error.detail)
            self.assertTrue(error.detail.isprintable(), error.detail)
            self.assertLess(len(error.detail), 1024)

    def test_problem_says_what_is_accepted(self):
        for key, spec in extra_specs.TABLE.items():
            error = self.assertRaises(ValueError, spec.parse, 'nonsense')
            self.assertIn(spec.accepted, str(error), key)
            self.assertIn("'nonsense'", str(error), key)

    def test_long_unknown_key_is_cut(self):
        error = self.assertRaises(
            errors.InvalidExtraSpecs,
            extra_specs.parse,
            full({'k' * 5000: '1'}),
        )
        self.assertLess(len(error.problems[0][0]), 100)
        self.assertTrue(error.problems[0][0].endswith('k...'))

    def test_unprintable_key_is_escaped(self):
        error = self.assertRaises(
            errors.InvalidExtraSpecs,
            extra_specs.parse,
            full({'\u202e\n': '1'}),
        )
        self.assertEqual('vsched:\\u202e\\n', error.problems[0][0])

    @hypothesis.given(
        st.dictionaries(
            st.sampled_from(
                [
                    *map(spec_values.PREFIX.__add__, extra_specs.TABLE),
                    'vsched:',
                    'hw:cpu_policy',
                ]
            )
            | st.text(),
            st.text()
            | st.integers()
            | st.none()
            | st.booleans()
            | st.integers().map(str)
            | st.sampled_from(['deadline', 'cfs', 'auto', 'off', 'true']),
        )
    )
    def test_any_text_is_read_or_refused(self, specs):
        try:
            found = extra_specs.parse(specs)
        except errors.InvalidExtraSpecs as error:
            self.assertNotEqual((), error.problems)
            self.assertTrue(error.detail.isprintable())
        else:
            self.assertEqual(set(extra_specs.TABLE), set(found.values))

    @hypothesis.given(
        strategies.reservations(period_us_min=100, runtime_us_min=2)
    )
    def test_render_and_parse_are_inverse(self, one):
        rendered = extra_specs.render(one)
        if str(one.backend) in extra_specs.TABLE['backend'].unavailable or (
            one.backend in reservation.LIMITS and one.problems(one.backend)
        ):
            self.assertRaises(
                errors.InvalidExtraSpecs, extra_specs.parse, rendered
            )
            return
        parsed = extra_specs.parse(rendered)
        self.assertEqual(one, parsed.reservation)
        self.assertEqual(rendered, extra_specs.render(parsed.reservation))


class TableTestCase(base.BaseTestCase):
    def test_defaults_are_accepted_values(self):
        for key, spec in extra_specs.TABLE.items():
            if spec.default is not None:
                self.assertEqual(
                    spec.default, spec.parse(str(spec.default)), key
                )

    def test_bounds_are_accepted_values(self):
        for spec in extra_specs.TABLE.values():
            for value in (spec.minimum, spec.maximum):
                if value is not None:
                    self.assertEqual(value, spec.parse(str(value)))
            for word in spec.choices:
                if word in spec.available:
                    self.assertEqual(word, spec.parse(word))

    def test_every_backend_is_implemented(self):
        for name in reservation.Backend:
            found = extra_specs.parse(
                {'vsched:cpu_runtime_us': '5000', 'vsched:backend': str(name)}
            )
            self.assertIs(name, found.reservation.backend)

    def test_what_nothing_implements_is_refused(self):
        spec = spec_values.ExtraSpec(
            'fruit',
            spec_values.Type.CHOICE,
            'Which.',
            choices=('apple', 'pear'),
            unavailable=frozenset({'pear'}),
        )
        self.assertEqual(('apple',), spec.available)
        problem = self.assertRaises(
            spec_values.Unavailable, spec.parse, 'pear'
        )
        self.assertIn(
            'is not available in this release; accepted: ', str(problem)
        )

    def test_needed_keys_exist(self):
        for spec in extra_specs.TABLE.values():
            if spec.needs is not None:
                self.assertIn(spec.needs, extra_specs.TABLE)

    def test_bounds_fit_their_type(self):
        for spec in extra_specs.TABLE.values():
            numeric = spec.type in (
                spec_values.Type.INTEGER,
                spec_values.Type.DECIMAL,
            )
            self.assertEqual(numeric, spec.minimum is not None, spec.key)
            self.assertEqual(numeric, spec.maximum is not None, spec.key)
            self.assertEqual(
                spec.type is spec_values.Type.CHOICE, bool(spec.choices)
            )

    def test_help_is_a_sentence(self):
        for spec in extra_specs.TABLE.values():
            self.assertTrue(spec.help.endswith('.'), spec.key)
            self.assertTrue(spec.key.isidentifier(), spec.key)

    def test_reservation_ranges_cover_what_backends_take(self):
        runtime = extra_specs.TABLE['cpu_runtime_us']
        period = extra_specs.TABLE['cpu_period_us']
        for limits in reservation.LIMITS.values():
            self.assertLessEqual(runtime.minimum, limits.runtime_us_min)
            self.assertGreaterEqual(runtime.maximum, limits.runtime_us_max)
            self.assertLessEqual(period.minimum, limits.period_us_min)
            self.assertGreaterEqual(period.maximum, limits.period_us_max)
