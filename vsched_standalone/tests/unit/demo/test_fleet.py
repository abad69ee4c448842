# SPDX-License-Identifier: Apache-2.0

import dataclasses

from oslotest import base

from vsched_lib.contract import messages
from vsched_standalone.demo import fleet

NOW = 1_760_000_000.0


def contents(seed, count=6, instances=5):
    return [
        (
            member.host.name,
            member.silent,
            member.host.contents(NOW, [(NOW, 1_000_000)], full=True),
        )
        for member in fleet.build(seed, count, instances, NOW)
    ]


class TestBuild(base.BaseTestCase):
    def test_equal_seeds_have_equal_fleets(self):
        for one, other in zip(contents(3), contents(3), strict=True):
            self.assertEqual(one[:2], other[:2])
            for field in ('instances', 'reservations', 'usage', 'host_info'):
                self.assertEqual(one[2][field], other[2][field], field)

    def test_other_seeds_have_other_fleets(self):
        self.assertNotEqual(
            [one[2]['instances'] for one in contents(3)],
            [one[2]['instances'] for one in contents(4)],
        )

    def test_a_host_does_not_depend_on_the_number_of_hosts(self):
        self.assertEqual(
            contents(3)[1][2]['instances'],
            contents(3, count=20)[1][2]['instances'],
        )

    def test_all_states_are_there(self):
        found = contents(1, 12)
        self.assertEqual(
            {messages.State.APPLIED, messages.State.REFUSED},
            {
                one.state
                for _, _, report in found
                for one in report['reservations']
            },
        )
        self.assertEqual(
            ['demo-11'], [name for name, silent, _ in found if silent]
        )
        self.assertEqual(
            ['demo-09'],
            [
                name
                for name, _, report in found
                if report['host_info'].leaked_mcpu
            ],
        )
        self.assertNotEqual(
            [],
            [
                one
                for _, _, report in found
                for one in report['balloons']
                if one.online_vcpus < one.vcpus
            ],
        )

    def test_every_report_is_within_the_bounds_of_messages(self):
        for name, _, report in contents(2, 12):
            whole = messages.Report(name, 1, NOW, **report)
            self.assertEqual(
                whole, messages.Report.from_dict(whole.to_dict()), name
            )

    def test_it_is_labelled(self):
        for name, _, report in contents(1):
            self.assertEqual('demo-', name[:5])
            self.assertEqual('simulated', report['host_info'].agent_version)
            self.assertEqual('simulated', report['host_info'].hypervisor)
            for profile in (
                *report['error_profiles'],
                *report['overhead_profiles'],
            ):
                self.assertIn('simulated', profile.notes[0])

    def test_names_are_unique(self):
        found = [
            one
            for _, _, report in contents(1, 12)
            for one in report['instances']
        ]
        for field in ('instance_uuid', 'name'):
            values = [dataclasses.asdict(one)[field] for one in found]
            self.assertEqual(len(values), len(set(values)))
