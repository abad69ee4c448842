# SPDX-License-Identifier: Apache-2.0

"""Each claim of the threat model names tests, and there are such tests."""

import configparser
import pathlib
import re
import typing as ty

from oslo_privsep import capabilities
from oslotest import base

from vsched_agent import privileged
from vsched_standalone.tests import named_tests

_ROOT = pathlib.Path(__file__).parents[3]
_PAGE = _ROOT / 'doc' / 'source' / 'admin' / 'security.rst'
_UNITS = _ROOT / 'etc' / 'vsched' / 'systemd'
_ACTORS = (
    'Tenant',
    'Guest',
    'Host',
    'Privileged helpers',
    'Operator',
    'Network',
)
_WORST = ': at worst'
_NAME = re.compile(r'``((?:vsched_\w+|nova_filters)\.tests\.[\w.]+)``')


class Claim(ty.NamedTuple):
    """One item: what is tried, and what happens."""

    section: str
    title: str
    text: str

    def field(self, name):
        """The content of a field, None without it."""
        found = re.search(
            r'^   :%s:((?:\n? {4,}\S.*| \S.*|\n(?=\s))*)' % re.escape(name),
            self.text,
            re.MULTILINE,
        )
        return None if found is None else found[1].strip()


def claims(text):
    """The items of the definition lists of all sections, in order."""
    lines = [*text.splitlines(), '', '']
    section, found, body = '', [], None
    for number, line in enumerate(lines[:-1]):
        following = lines[number + 1]
        if (
            re.fullmatch(r'([=-])\1+', following)
            and line.strip()
            and len(following) == len(line)
        ):
            section, body = line, None
        elif line.strip() and not line.startswith(' '):
            body = None
            if re.match(r'   \S', following) and not line.startswith('..'):
                body = []
                found.append((section, line, body))
        elif body is not None:
            body.append(line)
    return [
        Claim(section, title, '\n'.join(body))
        for section, title, body in found
    ]


def problems(text):
    """What is wrong with a page, a sentence each."""
    found = [
        named
        for name in sorted(set(_NAME.findall(text)))
        if (named := named_tests.problem(name)) is not None
    ]
    stated = claims(text)
    for one in stated:
        shown = one.field('Shown by')
        if shown is not None:
            rest = _NAME.sub('', shown).strip(', \n')
            if not _NAME.search(shown) or rest:
                found.append(
                    '%s: %s: no tests but %r' % (one.section, one.title, rest)
                )
        elif not one.section.endswith(_WORST):
            found.append('%s: %s: no test is named' % (one.section, one.title))
        elif not one.field('Not prevented'):
            found.append(
                '%s: %s: neither a test nor a reason'
                % (one.section, one.title)
            )
    sections = {one.section for one in stated}
    for actor in _ACTORS:
        for section in (actor, actor + _WORST):
            if section not in sections:
                found.append('there is no claim in %r' % section)
    return found


class TestPage(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.text = _PAGE.read_text(encoding='utf-8')

    def test_every_claim_names_tests_that_there_are(self):
        self.assertEqual([], problems(self.text))
        self.assertLess(60, len(claims(self.text)))

    def test_each_test_is_named_as_one(self):
        """A name outside of literals would not be looked up."""
        bare = re.sub(r'``[^`]+``', '', self.text)
        self.assertNotRegex(bare, r'\.tests\.')

    def test_the_helpers(self):
        """The table has all, with their capabilities and users."""
        table = self.text[self.text.index('.. list-table:: Helpers') :]
        rows = re.findall(
            r'^   \* - ``(\w+)``\n     - ``(\w+)``\n     - (.+)$',
            table,
            re.MULTILINE,
        )
        wanted = {}
        for name, context in privileged.CONTEXTS.items():
            unit = configparser.RawConfigParser(strict=False)
            unit.optionxform = str
            unit.read(_UNITS / ('vsched-helper-%s@.service' % name))
            user = unit.get('Service', 'User', fallback=None)
            (capability,) = context.kept
            wanted[name] = capabilities.CAPS_BYVALUE[capability], user
        self.assertEqual(
            wanted,
            {
                name: (capability, (re.findall('``(.+)``', user) or [None])[0])
                for name, capability, user in rows
            },
        )


class TestProblems(base.BaseTestCase):
    """Pages that are not right are found out."""

    def setUp(self):
        super().setUp()
        self.text = _PAGE.read_text(encoding='utf-8')

    def only(self, text):
        self.assertNotEqual(self.text, text)
        (found,) = problems(text)
        return found

    def test_a_test_that_is_gone(self):
        name = (
            'vsched_api.tests.unit.rest.test_authorization.'
            'TestAuthorization.test_an_ordinary_user_may_nothing'
        )
        for other, word in (
            (name + 's', 'has no test test_an'),
            (name.replace('TestAuth', 'TestOth'), 'no class TestOth'),
            (name.replace('.rest.', '.gone.'), 'no such module'),
        ):
            self.assertIn(word, self.only(self.text.replace(name, other)))

    def test_a_class_that_is_not_run(self):
        self.assertIn(
            'no test that is run',
            named_tests.problem(
                'vsched_api.tests.suites.inspection.Inspection'
            ),
        )
        self.assertIn(
            'has no test',
            named_tests.problem('vsched_api.tests.suites.inspection'),
        )
        self.assertIsNone(
            named_tests.problem(
                'vsched_api.tests.unit.operations.test_inspection.'
                'TestInspection.test_any_json_is_stored_or_refused'
            )
        )

    def test_a_claim_without_a_test(self):
        for body in (
            'It is refused.',
            'Refused.\n\n   :Not prevented:\n'
            '      this excuse is not for claims.',
        ):
            self.assertIn(
                'Does it: no test is named',
                self.only(
                    self.text.replace(
                        'Guest\n=====\n',
                        'Guest\n=====\n\nDoes it\n   %s\n' % body,
                    )
                ),
            )

    def test_a_claim_with_words_in_place_of_a_test(self):
        for shown in ('several tests', '``test_it``'):
            self.assertIn(
                'no tests but',
                self.only(
                    self.text.replace(
                        'Guest\n=====\n',
                        'Guest\n=====\n\n'
                        'Does it\n   :Shown by:\n      %s\n' % shown,
                    )
                ),
            )

    def test_a_residual_risk_without_a_reason(self):
        self.assertIn(
            'neither a test nor a reason',
            self.only(
                self.text.replace(
                    'Guest: at worst\n---------------\n',
                    'Guest: at worst\n---------------\n\nDoes it\n   '
                    'Always.\n',
                )
            ),
        )

    def test_an_actor_that_was_forgotten(self):
        self.assertIn(
            "no claim in 'Guest'",
            '\n'.join(problems(self.text.replace('Guest\n=====\n', ''))),
        )
