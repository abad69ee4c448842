# SPDX-License-Identifier: Apache-2.0

"""The guide to troubleshooting has every code, with cause and remedy."""

import pathlib
import re

from oslotest import base

from vsched_api.rest import openapi_document
from vsched_lib.contract import errors

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / 'doc' / 'source' / 'admin' / 'troubleshooting.rst'
NO_ACTION = 'Events that need no action\n='

_ENTRY = re.compile(
    r'^``(vsched\.[a-z_.]+)``\n((?:   .*\n)+)', flags=re.MULTILINE
)


def entries(text):
    """Return the fields of each entry, by code, in the order of the page."""
    return [
        (
            found[1],
            {
                one[1]: ' '.join(one[2].split())
                for one in re.finditer(
                    r'^   :(\w+): ((?:.*\n)(?:      .*\n)*)',
                    found[2],
                    re.MULTILINE,
                )
            },
        )
        for found in _ENTRY.finditer(text)
    ]


def answered(part):
    """Return the codes that a part of an OpenAPI document has."""
    if isinstance(part, dict):
        found = set(part.get('x-vsched-codes', ()))
        return found.union(*map(answered, part.values()))
    return (
        set().union(*map(answered, part)) if isinstance(part, list) else set()
    )


class TroubleshootingTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.problems, _, self.rest = PAGE.read_text().partition(NO_ACTION)

    def test_every_code_has_one_place(self):
        listed = [code for code, _ in entries(self.problems)]
        listed += re.findall(r'^\* ``(vsched\.[a-z_.]+)``$', self.rest, re.M)
        self.assertEqual(
            sorted(code.value for code in errors.Code), sorted(listed)
        )

    def test_each_code_of_an_answer_has_an_entry(self):
        codes = answered(openapi_document.document())
        self.assertLess(20, len(codes))
        # Such a code is of an error: that it needs no action is no answer.
        self.assertEqual(
            set(), codes - {code for code, _ in entries(self.problems)}
        )

    def test_each_entry_has_a_cause_and_a_remedy(self):
        found = entries(self.problems)
        self.assertLess(60, len(found))
        for code, fields in found:
            self.assertEqual({'Cause', 'Remedy'}, fields.keys(), code)
            for name, text in fields.items():
                self.assertLess(2, len(text.split()), '%s %s' % (code, name))

    def test_options_that_are_named_exist(self):
        """``[section] option`` is in one of the samples."""
        samples = {}
        for path in (ROOT / 'etc/vsched').glob('*.conf.sample'):
            section = ''
            for line in path.read_text().splitlines():
                if line.startswith('['):
                    section = line.strip('[]')
                elif match := re.match(r'#?(\w+) = ', line):
                    samples.setdefault(section, set()).add(match[1])
        named = re.findall(r'``\[(\w+)\]\s+(\w+)', self.problems)
        self.assertLess(10, len(named))
        for section, option in named:
            self.assertIn(option, samples.get(section, ()), section)
