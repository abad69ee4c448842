# SPDX-License-Identifier: Apache-2.0

"""The validators as Nova loads and uses them."""

from nova_filters.tests.functional import nova_case
from vsched_lib.contract import extra_specs
from vsched_lib.contract import spec_values

if nova_case.MISSING is None:
    from nova.api.validation.extra_specs import validators
    from nova import exception


class TestValidators(nova_case.NovaCase):
    """Through Nova's own registry, by the entry point."""

    def refuse(self, name, text):
        return str(
            self.assertRaises(
                exception.ValidationError, validators.validate, name, text
            )
        )

    def test_every_key_of_the_table(self):
        self.assertEqual(
            {spec.name for spec in extra_specs.TABLE.values()},
            {
                name
                for name in validators.VALIDATORS
                if name.startswith(spec_values.PREFIX)
            },
        )

    def test_what_is_accepted_is_what_the_agent_reads(self):
        texts = (
            '',
            '0',
            '1',
            '2',
            '+2',
            ' 2',
            '2_0',
            '1.5',
            '100',
            '100.1',
            '0.05',
            '99999',
            '4194304',
            '4194305',
            'true',
            'True',
            'no',
            'capped',
            'deadline',
            'web',
            'auto',
            'off',
            'none',
            'x' * 99,
        )
        for spec in extra_specs.TABLE.values():
            for text in texts:
                try:
                    spec.parse(text)
                except ValueError as problem:
                    self.assertIn(str(problem), self.refuse(spec.name, text))
                else:
                    validators.validate(spec.name, text)

    def test_unknown_keys(self):
        self.assertIn(
            'does not appear to be a valid extra spec',
            self.refuse('vsched:cpu_runtime', '1'),
        )
        validators.validate('other:cpu_runtime', '1')
