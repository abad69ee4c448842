# SPDX-License-Identifier: Apache-2.0

"""Quantities as operators write and read them."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from vsched_client import units


class ReadTestCase(base.BaseTestCase):
    def test_share(self):
        for text, value in (
            ('60%', Fraction(3, 5)),
            ('60 %', Fraction(3, 5)),
            ('0.6', Fraction(3, 5)),
            ('600m', Fraction(3, 5)),
            ('1', 1),
            ('100%', 1),
            ('0.1%', Fraction(1, 1000)),
            ('12.5%', Fraction(1, 8)),
        ):
            self.assertEqual(value, units.share(text), text)

    def test_no_share(self):
        for text in (
            '',
            '%',
            'x',
            '60 percent',
            '-1%',
            '+1%',
            '1e-1',
            '6٠%',
            '0x1',
            '60%\n',
            'nan',
            '.5',
            '1' * 50,
        ):
            error = self.assertRaises(units.InvalidQuantity, units.share, text)
            self.assertIn('accepted: a number as in 60%', str(error))

    def test_share_out_of_range(self):
        error = self.assertRaises(units.InvalidQuantity, units.share, '60')
        self.assertIn("'60' is more than one CPU", str(error))
        self.assertIn('accepted: up to 100%', str(error))
        error = self.assertRaises(units.InvalidQuantity, units.share, '0%')
        self.assertIn('accepted: a share above 0', str(error))

    def test_mcpu(self):
        self.assertEqual(1500, units.mcpu('1.5'))
        self.assertEqual(1500, units.mcpu('150%'))
        self.assertEqual(1500, units.mcpu('1500m'))
        # Rounded up, so that it is never less than was asked for.
        self.assertEqual(334, units.mcpu('33.31%'))

    def test_duration(self):
        for text, value in (
            ('1us', 1),
            ('500 us', 500),
            ('500µs', 500),
            ('10ms', 10_000),
            ('1.5ms', 1500),
            ('0.25s', 250_000),
            ('1s', 1_000_000),
        ):
            self.assertEqual(value, units.duration_us(text), text)

    def test_no_duration(self):
        for text in ('', '10', '10 m', 'ms', '-1ms', '1h', '1ms '):
            error = self.assertRaises(
                units.InvalidQuantity, units.duration_us, text
            )
            self.assertIn('accepted: a number with its unit', str(error))
        for text in ('0us', '0.5us', '1.0001ms', '9999999999999999s'):
            error = self.assertRaises(
                units.InvalidQuantity, units.duration_us, text
            )
            self.assertIn('not a whole number of microseconds', str(error))

    def test_text_of_others_is_cut_and_escaped(self):
        error = self.assertRaises(
            units.InvalidQuantity, units.share, '\x1b[31m' + 'x' * 1000
        )
        self.assertIn(r'\x1b[31m', str(error))
        self.assertLess(len(str(error)), 200)

    @given(st.fractions(Fraction(1, 1000), 1), st.integers(100, 4_194_304))
    def test_runtime_is_never_less_than_the_share(self, part, period_us):
        runtime_us = units.runtime_us(part, period_us)
        self.assertGreaterEqual(Fraction(runtime_us, period_us), part)
        self.assertLess(runtime_us - 1, part * period_us)
        self.assertLessEqual(runtime_us, period_us)


class FormatTestCase(base.BaseTestCase):
    def test_share(self):
        self.assertEqual(600_000, units.share_ppm(12_000, 20_000))
        self.assertIsNone(units.share_ppm(None, 20_000))
        self.assertIsNone(units.share_ppm(12_000, None))
        for ppm, text in (
            (600_000, '60 %'),
            (333_333, '33.33 %'),
            (1_000, '0.1 %'),
            (0, '0 %'),
        ):
            self.assertEqual(text, units.format_ppm(ppm))

    def test_error(self):
        self.assertEqual('+0.31 %', units.format_error_ppm(3_100))
        self.assertEqual('-73.70 %', units.format_error_ppm(-737_000))

    def test_mcpu(self):
        for mcpu, text in (
            (1800, '1.8 CPU'),
            (600, '0.6 CPU'),
            (0, '0 CPU'),
            (1_234_567, '1235 CPU'),
        ):
            self.assertEqual(text, units.format_mcpu(mcpu))

    def test_duration(self):
        for us, text in (
            (1, '1 us'),
            (500, '500 us'),
            (10_000, '10 ms'),
            (1_500, '1.5 ms'),
            (1_000_012, '1 s'),
            (60_001_000, '60 s'),
            (0.25, '0.25 us'),
        ):
            self.assertEqual(text, units.format_us(us))

    def test_seconds(self):
        for seconds, text in (
            (12.34, '12.34 s'),
            (65, '1 min 5 s'),
            (3_900, '1 h 5 min'),
        ):
            self.assertEqual(text, units.format_seconds(seconds))
