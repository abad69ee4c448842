# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import dataclasses

from oslotest import base

from vsched_agent.tests import fakes
from vsched_agent import wanted
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import overhead
from vsched_lib.model import reservation


class TestWanted(base.BaseTestCase):

    def override(self, **fields):
        return messages.Override(**{
            'instance_uuid': fakes.domain(1).uuid, 'generation': 7,
            'runtime_us': 6_000, 'period_us': 20_000, 'mode': 'capped',
            **fields})

    def test_nothing(self):
        self.assertEqual(wanted.NOTHING, wanted.of(fakes.domain(1), None))
        self.assertEqual(wanted.NOTHING, wanted.of(
            dataclasses.replace(fakes.domain(1), extra_specs={
                'hw:cpu_policy': 'dedicated'}), None))

    def test_metadata(self):
        found = wanted.of(fakes.domain(
            1, cpu_runtime_us=12_000, backend='cfs'), None)
        self.assertEqual(
            wanted.Wanted(reservation.Reservation(
                12_000, 20_000, reservation.Mode.CAPPED,
                reservation.Backend.CFS), messages.Source.METADATA), found)

    def test_the_override_is_louder(self):
        for domain in (fakes.domain(1),
                       fakes.domain(1, cpu_runtime_us=12_000),
                       fakes.domain(1, cpu_runtime_us='much'),
                       dataclasses.replace(
                           fakes.domain(1), metadata_problem='no XML')):
            found = wanted.of(domain, self.override(backend='deadline'))
            self.assertEqual(
                wanted.Wanted(reservation.Reservation(
                    6_000, 20_000, reservation.Mode.CAPPED,
                    reservation.Backend.DEADLINE),
                    messages.Source.OVERRIDE, 7), found)

    def test_metadata_that_can_not_be_read(self):
        found = wanted.of(fakes.domain(1, cpu_runtime_us='much'), None)
        self.assertIsNone(found.promise)
        self.assertEqual(errors.Code.EXTRA_SPECS_INVALID, found.problem.code)
        found = wanted.of(dataclasses.replace(
            fakes.domain(1), metadata_problem='it says two things'), None)
        self.assertEqual(messages.Source.METADATA, found.source)
        self.assertEqual('it says two things', found.problem.detail)

    def test_an_override_that_makes_no_sense(self):
        for fields in ({'runtime_us': 30_000}, {'mode': 'shared'},
                       {'backend': 'fifo'}, {'runtime_us': 0}):
            with self.subTest(fields=fields):
                found = wanted.of(
                    fakes.domain(1, cpu_runtime_us=12_000),
                    self.override(**fields))
                self.assertEqual(
                    (None, messages.Source.OVERRIDE, 7),
                    (found.promise, found.source, found.generation))
                self.assertEqual(errors.Code.RESERVATION_INVALID,
                                 found.problem.code)


class TestBound(base.BaseTestCase):

    def test_the_flavors_bound(self):
        one = fakes.domain(1, cpu_runtime_us=5000, max_alloc_error_pct='2.5')
        self.assertEqual(25_000, wanted.of(one, None).ask.bound_ppm)

    def test_it_holds_for_an_override_as_well(self):
        one = fakes.domain(1, cpu_runtime_us=5000, max_alloc_error_pct='2')
        found = wanted.of(one, messages.Override(
            one.uuid, 3, 6_000, 20_000, 'capped'))
        self.assertEqual((6_000, 20_000, 3), (
            found.promise.runtime_us, found.ask.bound_ppm, found.generation))

    def test_without_one_anything_may_be_missing(self):
        self.assertIsNone(wanted.of(
            fakes.domain(1, cpu_runtime_us=5000), None).ask.bound_ppm)


class TestIoCharging(base.BaseTestCase):

    def test_the_flavors_word(self):
        one = fakes.domain(1, cpu_runtime_us=5000, io_charging='charge')
        self.assertEqual('charge', wanted.of(one, None).io_charging)
        found = wanted.of(one, messages.Override(
            one.uuid, 3, 6_000, 20_000, 'capped'))
        self.assertEqual('charge', found.io_charging)

    def test_without_one_nobody_pays(self):
        self.assertEqual('none', wanted.of(
            fakes.domain(1, cpu_runtime_us=5000), None).io_charging)


class TestRates(base.BaseTestCase):

    def test_io_that_somebody_pays_for(self):
        for charging, charged in (('charge', True), ('none', None),
                                  ('overprovision', False)):
            one = fakes.domain(1, cpu_runtime_us=5000, net_rx_pps=500,
                               io_charging=charging)
            rates = overhead.Rates(net_rx_pps=500)
            for found in (wanted.of(one, None), wanted.of(
                    one, messages.Override(
                        one.uuid, 3, 6_000, 20_000, 'capped'))):
                self.assertEqual((rates, charged), (
                    found.ask.rates, found.ask.charged))

    def test_workload_class(self):
        for text, found in (('web', 'web'), ('games', None), (None, None)):
            specs = {} if text is None else {'vsched:workload_class': text}
            self.assertEqual(found, wanted.workload_class(
                dataclasses.replace(fakes.domain(1), extra_specs=specs)))
