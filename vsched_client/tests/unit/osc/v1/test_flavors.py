# SPDX-License-Identifier: Apache-2.0

"""Flavors: what is shown, written to Nova, and corrected."""

from vsched_client import nova
from vsched_client.tests import fake_nova
from vsched_client.tests.unit.osc.v1 import command_case

ExitCode = command_case.ExitCode
CLAIM = 'resources_VSCHED:CUSTOM_VSCHED_MCPU'
RUNTIME = 'vsched:cpu_runtime_us'
PERIOD = 'vsched:cpu_period_us'


class FlavorTestCase(command_case.CommandTestCase):
    def setUp(self):
        super().setUp()
        self.nova = fake_nova.FakeNova(
            right={
                RUNTIME: '6000',
                CLAIM: '600',
                'group_policy': 'none',
                'hw:mem_page_size': 'large',
            },
            wrong={RUNTIME: '5000', CLAIM: '7', 'trait_VSCHED:' + 'X': 'y'},
            others={'hw:mem_page_size': 'large'},
        )
        self.changes = {}
        self.answer('POST', '/v1/flavors/claims', json=self.claim)

    def claim(self, request, context):
        """Answer roughly as the API does."""
        asked = request.json()
        specs = asked['extra_specs']
        runtime_us = int(specs.get(RUNTIME, 0)) or None
        claim_mcpu = (runtime_us or 0) // 10
        after = {
            name: text
            for name, text in specs.items()
            if not name.startswith(('resources_VSCHED:', 'trait_VSCHED:'))
            and name != 'group_policy'
        }
        if claim_mcpu:
            after.update({CLAIM: str(claim_mcpu), 'group_policy': 'none'})
        return {
            'claim': {
                'agrees': after == specs,
                'extra_specs': after,
                'runtime_us': runtime_us,
                'period_us': runtime_us and 20_000,
                'mode': runtime_us and 'capped',
                'backend': None,
                'claim_mcpu': claim_mcpu,
                'guest_mcpu': claim_mcpu,
                'overhead_mcpu': 0,
                'notes': [],
                **self.changes,
            }
        }

    def run_flavor(self, text, *words, **more):
        return self.run_command(
            'cpu flavor ' + text, *words, compute=self.nova, **more
        )

    def written(self):
        return [
            (method, path)
            for method, path, version, _ in self.nova.requests
            if method != 'GET'
        ]

    def test_show(self):
        found = self.run_flavor('show right -f json').json
        self.assertEqual(
            (True, [], 600, 300_000, {RUNTIME: '6000'}, {CLAIM: '600'}),
            tuple(
                found[name]
                for name in (
                    'agrees',
                    'differences',
                    'claim_mcpu',
                    'share_ppm',
                    'extra_specs',
                    'claim_extra_specs',
                )
            ),
        )
        self.changes['notes'] = ['only \x1b the filters check it']
        found = self.run_flavor('show right')
        self.assertIn('0.6 CPU', found.out)
        self.assertIn(r'only \x1b the filters', found.out)
        self.assertEqual('', found.err)

    def test_show_differences(self):
        found = self.run_flavor('show wrong', code=ExitCode.DIFFERS)
        for text in (
            CLAIM + ' is 7, must be 500',
            'group_policy is missing, must be none',
            'trait_VSCHED:X is y, must be removed',
        ):
            self.assertIn(text, found.out)
        self.assertIn('cpu flavor sync', found.err)
        self.assertEqual([], self.written())

    def test_set(self):
        found = self.run_flavor(
            'set others --share 60% --period 10ms --mode work_conserving '
            '--max-alloc-error-pct 2.5 --comm-aware no --weight 7 '
            '--property net_rx_pps=1000 --property vsched:workload_class=web '
            '-f json'
        )
        self.assertEqual(
            {
                'hw:mem_page_size': 'large',
                RUNTIME: '6000',
                PERIOD: '10000',
                'vsched:cpu_mode': 'work_conserving',
                'vsched:max_alloc_error_pct': '2.5',
                'vsched:comm_aware': 'false',
                'vsched:weight': '7',
                'vsched:net_rx_pps': '1000',
                'vsched:workload_class': 'web',
                CLAIM: '600',
                'group_policy': 'none',
            },
            self.nova.specs['others'],
        )
        self.assertEqual(
            [('POST', '/flavors/others/os-extra_specs')], self.written()
        )
        self.assertEqual(
            {nova.MICROVERSION}, {one[2] for one in self.nova.requests}
        )
        self.assertTrue(found.json['agrees'])
        self.assertIn(CLAIM + ' = 600\n', found.err)

    def test_set_a_share_of_the_flavors_period(self):
        self.nova.specs['others'][PERIOD] = '40000'
        self.run_flavor('set others --share 50%')
        self.assertEqual('20000', self.nova.specs['others'][RUNTIME])
        self.run_flavor('set others --share 50% --property cpu_period_us=')
        self.assertNotIn(PERIOD, self.nova.specs['others'])
        self.assertEqual('10000', self.nova.specs['others'][RUNTIME])

    def test_set_takes_away(self):
        self.nova.specs['right'].update(
            {'vsched:backend': 'cfs', 'vsched:weight': '7', 'vsched:x': 'y'}
        )
        found = self.run_flavor(
            'set right --backend any --weight default --property x='
        )
        self.assertEqual(
            [
                ('DELETE', '/flavors/right/os-extra_specs/vsched:' + name)
                for name in ('backend', 'weight', 'x')
            ],
            self.written(),
        )
        self.assertIn('vsched:weight removed', found.err)
        self.nova.requests.clear()
        self.run_flavor('set right --no-property')
        # Never a reservation without its claim.
        self.assertEqual(
            [RUNTIME, CLAIM, 'group_policy'],
            [path.rpartition('/')[2] for _, path in self.written()],
        )
        self.assertEqual(
            {'hw:mem_page_size': 'large'}, self.nova.specs['right']
        )

    def test_set_is_refused(self):
        self.answer(
            'POST',
            '/v1/flavors/claims',
            command_case.failure(400, 'vsched.extra_specs.invalid'),
        )
        found = self.run_flavor('set right --runtime 1s', code=ExitCode.ERROR)
        self.assertIn('vsched.extra_specs.invalid', found.err)
        self.assertEqual([], self.written())

    def test_sync(self):
        before = {name: dict(one) for name, one in self.nova.specs.items()}
        found = self.run_flavor(
            'sync --all --dry-run -f json', code=ExitCode.DIFFERS
        )
        changes = [
            (CLAIM, '7', '500'),
            ('group_policy', None, 'none'),
            ('trait_VSCHED:X', 'y', None),
        ]
        self.assertEqual(
            changes,
            [
                (one['extra_spec'], one['before'], one['after'])
                for one in found.json
            ],
        )
        self.assertEqual(before, self.nova.specs)
        found = self.run_flavor('sync wrong right wrong -f json')
        self.assertEqual(['wrong'] * 3, [one['flavor'] for one in found.json])
        self.assertEqual(
            {RUNTIME: '5000', CLAIM: '500', 'group_policy': 'none'},
            self.nova.specs['wrong'],
        )
        self.assertEqual([], self.run_flavor('sync --all -f json').json)

    def test_sync_goes_on_after_an_invalid_flavor(self):
        self.answer(
            'POST',
            '/v1/flavors/claims',
            command_case.failure(400, 'vsched.extra_specs.invalid'),
            self.claim(
                type('R', (), {'json': lambda _: {'extra_specs': {}}})(), None
            ),
        )
        found = self.run_flavor('sync --all -f json', code=ExitCode.ERROR)
        self.assertIn('flavor right: the detail', found.err)
        self.assertEqual(3, len(found.json))

    def test_sync_lists_what_was_done_before_a_failure(self):
        self.nova.forbidden = {'DELETE'}
        self.changes['notes'] = ['some note']
        found = self.run_flavor('sync --all -f json', code=ExitCode.ERROR)
        self.assertEqual(
            [CLAIM, 'group_policy'], [one['extra_spec'] for one in found.json]
        )
        self.assertIn('flavor wrong: some note', found.err)
        self.assertIn(
            'policy os_compute_api:os-flavor-extra-specs:delete', found.err
        )

    def test_without_the_rights(self):
        self.nova.forbidden = {'extra_specs'}
        for words in ('show right', 'sync --all', 'set right --weight 7'):
            found = self.run_flavor(words, code=ExitCode.ERROR)
            self.assertIn('os-flavor-extra-specs:index', found.err)

    def test_usage(self):
        for words in (
            'set right',
            'set right --property hw:x=y',
            'set right --property x',
            'set right --weight 0',
            'set right --share 60% --runtime 6ms',
            'set right --share 101%',
            'sync',
            'sync right --all',
        ):
            self.run_flavor(words, code=ExitCode.USAGE)
        self.assertEqual([], self.written())
        for words in ('show', 'sync', 'set --weight 7'):
            found = self.run_flavor(words + ' unknown', code=ExitCode.ERROR)
            self.assertIn('there is no flavor unknown', found.err)
