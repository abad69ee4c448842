# SPDX-License-Identifier: Apache-2.0

import dataclasses

from oslotest import base

from vsched_agent.ballooning import manager
from vsched_agent.reservations import desired
from vsched_agent.tests import fakes
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import overhead
from vsched_lib.model import reservation

AUTO = extra_specs.IoCharging.AUTO


class TestWanted(base.BaseTestCase):
    def override(self, **fields):
        return collector_replies.Override(
            **{
                'instance_uuid': fakes.domain(1).uuid,
                'generation': 7,
                'runtime_us': 6_000,
                'period_us': 20_000,
                'mode': 'capped',
                **fields,
            }
        )

    def test_nothing(self):
        self.assertEqual(desired.NOTHING, desired.of(fakes.domain(1), None))
        self.assertEqual(
            desired.NOTHING,
            desired.of(
                dataclasses.replace(
                    fakes.domain(1), extra_specs={'hw:cpu_policy': 'dedicated'}
                ),
                None,
            ),
        )

    def test_metadata(self):
        found = desired.of(
            fakes.domain(1, cpu_runtime_us=12_000, backend='cfs'), None
        )
        self.assertEqual(
            desired.Desired(
                reservation.Reservation(
                    12_000,
                    20_000,
                    reservation.Mode.CAPPED,
                    reservation.Backend.CFS,
                ),
                messages.Source.METADATA,
                io_charging=AUTO,
                comm_aware=True,
            ),
            found,
        )

    def test_an_override_takes_precedence(self):
        for domain in (
            fakes.domain(1),
            fakes.domain(1, cpu_runtime_us=12_000),
            fakes.domain(1, cpu_runtime_us='much'),
            dataclasses.replace(fakes.domain(1), metadata_problem='no XML'),
        ):
            found = desired.of(domain, self.override(backend='deadline'))
            self.assertEqual(
                desired.Desired(
                    reservation.Reservation(
                        6_000,
                        20_000,
                        reservation.Mode.CAPPED,
                        reservation.Backend.DEADLINE,
                    ),
                    messages.Source.OVERRIDE,
                    7,
                    io_charging=AUTO,
                    comm_aware=True,
                ),
                found,
            )

    def test_periods_that_are_not_to_be_divided(self):
        one = fakes.domain(1, cpu_runtime_us=12_000, comm_aware='false')
        self.assertFalse(desired.of(one, None).comm_aware)
        self.assertFalse(desired.of(one, self.override()).comm_aware)
        self.assertTrue(
            desired.of(
                one, self.override(specs={'comm_aware': 'true'})
            ).comm_aware
        )
        self.assertFalse(
            desired.of(
                fakes.domain(1), self.override(specs={'comm_aware': 'false'})
            ).comm_aware
        )

    def test_metadata_that_can_not_be_read(self):
        found = desired.of(fakes.domain(1, cpu_runtime_us='much'), None)
        self.assertIsNone(found.reserved)
        self.assertEqual(errors.Code.EXTRA_SPECS_INVALID, found.problem.code)
        found = desired.of(
            dataclasses.replace(
                fakes.domain(1), metadata_problem='it says two things'
            ),
            None,
        )
        self.assertEqual(messages.Source.METADATA, found.source)
        self.assertEqual('it says two things', found.problem.detail)

    def test_an_invalid_override(self):
        for fields in (
            {'runtime_us': 30_000},
            {'mode': 'shared'},
            {'backend': 'fifo'},
            {'runtime_us': 0},
        ):
            with self.subTest(fields=fields):
                found = desired.of(
                    fakes.domain(1, cpu_runtime_us=12_000),
                    self.override(**fields),
                )
                self.assertEqual(
                    (None, messages.Source.OVERRIDE, 7),
                    (found.reserved, found.source, found.generation),
                )
                self.assertEqual(
                    errors.Code.RESERVATION_INVALID, found.problem.code
                )


class TestBound(base.BaseTestCase):
    def test_the_flavors_bound(self):
        one = fakes.domain(1, cpu_runtime_us=5000, max_alloc_error_pct='2.5')
        self.assertEqual(25_000, desired.of(one, None).ask.bound_ppm)

    def test_it_holds_for_an_override_as_well(self):
        one = fakes.domain(1, cpu_runtime_us=5000, max_alloc_error_pct='2')
        found = desired.of(
            one,
            collector_replies.Override(one.uuid, 3, 6_000, 20_000, 'capped'),
        )
        self.assertEqual(
            (6_000, 20_000, 3),
            (found.reserved.runtime_us, found.ask.bound_ppm, found.generation),
        )

    def test_without_one_anything_may_be_missing(self):
        self.assertIsNone(
            desired.of(
                fakes.domain(1, cpu_runtime_us=5000), None
            ).ask.bound_ppm
        )


class TestOverriddenSpecs(base.BaseTestCase):
    """What an override sets besides the reservation."""

    def override(self, one, **specs):
        return collector_replies.Override(
            one.uuid,
            3,
            6_000,
            20_000,
            'capped',
            specs=specs,
            request_id='req-1',
        )

    def test_they_hold_over_the_flavors(self):
        one = fakes.domain(
            1,
            cpu_runtime_us=5000,
            backend='cfs',
            max_alloc_error_pct='2',
            net_rx_pps=500,
            io_charging='charge',
        )
        found = desired.of(
            one,
            self.override(
                one, max_alloc_error_pct='5', io_charging='overprovision'
            ),
        )
        self.assertEqual(
            (6_000, 50_000, 'overprovision', False, 'req-1'),
            (
                found.reserved.runtime_us,
                found.ask.bound_ppm,
                found.io_charging,
                found.ask.charged,
                found.request_id,
            ),
        )
        # What is not set is the flavor's.
        found = desired.of(one, self.override(one, weight='7'))
        self.assertEqual(
            (20_000, 'charge', 500),
            (
                found.ask.bound_ppm,
                found.io_charging,
                found.ask.rates.net_rx_pps,
            ),
        )

    def test_a_flavor_without_a_reservation(self):
        one = fakes.domain(1)
        found = desired.of(one, self.override(one, io_charging='charge'))
        self.assertEqual(
            ('charge', 6_000), (found.io_charging, found.reserved.runtime_us)
        )

    def test_invalid_values(self):
        one = fakes.domain(1, cpu_runtime_us=5000)
        for value in ('free', 7, None, 'x' * 9000):
            found = desired.of(one, self.override(one, io_charging=value))
            self.assertEqual(
                (None, errors.Code.EXTRA_SPECS_INVALID, 3, 'override'),
                (
                    found.reserved,
                    found.problem.code,
                    found.generation,
                    found.source,
                ),
            )

    def test_only_what_may_be_overridden(self):
        one = fakes.domain(1, cpu_runtime_us=5000)
        found = desired.of(
            one,
            self.override(
                one, cpu_period_us='100', net_rx_pps='7', colour='red'
            ),
        )
        self.assertEqual(
            (20_000, 0), (found.reserved.period_us, found.ask.rates.net_rx_pps)
        )

    def test_ballooning_goes_by_them(self):
        one = fakes.domain(1, balloon='off', weight=100)
        self.assertIs(one, desired.effective(one, None))
        found = manager.flavor_settings(
            desired.effective(
                one,
                self.override(
                    one, balloon='auto', weight='300', min_vcpus='1'
                ),
            )
        )
        self.assertEqual(
            (True, 1, 300), (found.auto, found.min_vcpus, found.weight)
        )


class TestIoCharging(base.BaseTestCase):
    def test_the_flavors_mode(self):
        one = fakes.domain(1, cpu_runtime_us=5000, io_charging='charge')
        self.assertEqual('charge', desired.of(one, None).io_charging)
        found = desired.of(
            one,
            collector_replies.Override(one.uuid, 3, 6_000, 20_000, 'capped'),
        )
        self.assertEqual('charge', found.io_charging)

    def test_held_by_default(self):
        self.assertEqual(
            'auto',
            desired.of(fakes.domain(1, cpu_runtime_us=5000), None).io_charging,
        )

    def test_of_an_override_alone(self):
        one = fakes.domain(1)
        override = collector_replies.Override(
            one.uuid, 3, 6_000, 20_000, 'capped'
        )
        for domain in (one, dataclasses.replace(one, metadata_problem='no')):
            self.assertEqual('auto', desired.of(domain, override).io_charging)

    def test_without_a_reservation_there_is_none(self):
        self.assertEqual('none', desired.of(fakes.domain(1), None).io_charging)


class TestRates(base.BaseTestCase):
    def test_io_that_is_charged(self):
        for charging, charged in (
            ('auto', None),
            ('charge', True),
            ('none', None),
            ('overprovision', False),
        ):
            one = fakes.domain(
                1, cpu_runtime_us=5000, net_rx_pps=500, io_charging=charging
            )
            rates = overhead.Rates(net_rx_pps=500)
            for found in (
                desired.of(one, None),
                desired.of(
                    one,
                    collector_replies.Override(
                        one.uuid, 3, 6_000, 20_000, 'capped'
                    ),
                ),
            ):
                self.assertEqual(
                    (rates, charged), (found.ask.rates, found.ask.charged)
                )

    def test_workload_class(self):
        for text, found in (('web', 'web'), ('games', None), (None, None)):
            specs = {} if text is None else {'vsched:workload_class': text}
            self.assertEqual(
                found,
                desired.workload_class(
                    dataclasses.replace(fakes.domain(1), extra_specs=specs)
                ),
            )
