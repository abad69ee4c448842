# SPDX-License-Identifier: Apache-2.0

"""Check the tree against the table of the contributor glossary."""

from collections.abc import Iterator
import csv
import io
import pathlib
import re
import subprocess
import tokenize
import typing as ty

from oslotest import base

ROOT = pathlib.Path(__file__).parents[3]
PAGE = 'doc/source/contributor/glossary.rst'
SUFFIXES = ('.py', '.rst', '.sh', '.yaml', '.cfg')
#: Both name banned words on purpose.
EXEMPT = (PAGE, str(pathlib.Path(__file__).relative_to(ROOT)))
#: Values of the third column.
KINDS = {
    'everywhere': {'identifiers', 'prose'},
    'identifiers': {'identifiers'},
    'prose': {'prose'},
}
_HUMP = re.compile('(?<=[a-z0-9])(?=[A-Z])')


class Rule(ty.NamedTuple):
    """A row of the table.

    :param exceptions: beginnings of names of files that it does not apply to.
    """

    pattern: re.Pattern[str]
    replacement: str
    kinds: set[str]
    exceptions: tuple[str, ...] = ()


def rule(words: str, replacement: str, kind: str, exceptions: str) -> Rule:
    """Return the rule of a row.

    A space of ``words`` matches any white space and underscores.
    """
    return Rule(
        re.compile(
            r'\b(?:%s)\b' % words.strip('`').replace(' ', r'\s+'), re.I
        ),
        replacement,
        KINDS[kind],
        tuple(exceptions.split()),
    )


def rules(page: str) -> list[Rule]:
    """Return the rules of the page's ``csv-table``."""
    table = page.split('.. csv-table::', 1)[1].split('\n\n', 2)[1]
    rows = csv.reader(io.StringIO(table), skipinitialspace=True)
    return [rule(*(cell.strip() for cell in row)) for row in rows]


def words_of(text: str) -> str:
    """Return the words of names with spaces between, line by line."""
    return _HUMP.sub(' ', text).replace('_', ' ')


def pieces(name: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, kind, words) of a file.

    Everything but the names of Python is prose.
    """
    if not name.endswith('.py'):
        yield 1, 'prose', words_of(text)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], 'identifiers', words_of(token.string)
        elif token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], 'prose', words_of(token.string)


def check(name: str, text: str, table: list[Rule]) -> list[str]:
    """Return a line for each banned word of a file."""
    whole = words_of(text)
    applied = [
        one
        for one in table
        if one.pattern.search(whole) and not name.startswith(one.exceptions)
    ]
    if not applied:
        return []
    return [
        '%s:%d: "%s": use "%s"'
        % (
            name,
            line + words.count('\n', 0, found.start()),
            found.group(),
            one.replacement,
        )
        for line, kind, words in pieces(name, text)
        for one in applied
        if kind in one.kinds
        for found in one.pattern.finditer(words)
    ]


def files() -> list[str]:
    """Return the files of the tree that are or may become tracked."""
    names = subprocess.run(
        ('git', 'ls-files', '-co', '--exclude-standard'),
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    return [
        name
        for name in names
        if name.endswith(SUFFIXES)
        and name not in EXEMPT
        and (ROOT / name).is_file()
    ]


class GlossaryTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.table = rules((ROOT / PAGE).read_text())

    def test_no_banned_word_in_the_tree(self):
        found = [
            line
            for name in files()
            for line in check(name, (ROOT / name).read_text(), self.table)
        ]
        self.assertEqual([], found, 'see ' + PAGE)

    def test_each_exception_of_the_table_exists(self):
        self.assertNotEqual([], self.table)
        names = files()
        for one in self.table:
            for path in one.exceptions:
                self.assertTrue(
                    any(name.startswith(path) for name in names), path
                )


class CheckTestCase(base.BaseTestCase):
    def check(self, text, name='a/b.py', kind='everywhere', words='let go'):
        return check(name, text, [rule(words, 'release', kind, 'c')])

    def test_names_and_prose(self):
        text = '"""First.\n\nOr let\ngo."""\n_letGo = 1  # let_go\n'
        where = [line.split(':')[1] for line in self.check(text)]
        self.assertEqual(['3', '5', '5'], where)

    def test_message(self):
        self.assertEqual(
            ['a/b.py:1: "let go": use "release"'], self.check('let_go()\n')
        )

    def test_kinds(self):
        text = 'let_go()\n# let go\n'
        for kind, line in (('identifiers', '1'), ('prose', '2')):
            (found,) = self.check(text, kind=kind)
            self.assertEqual(line, found.split(':')[1])

    def test_all_text_of_other_files_is_prose(self):
        self.assertEqual([], self.check('let_go', 'a/b.sh', 'identifiers'))
        self.assertEqual(1, len(self.check('let_go', 'a/b.sh', 'prose')))

    def test_whole_words(self):
        self.assertEqual([], self.check('outlet_go()\n# outlet going\n'))

    def test_other_packages(self):
        self.assertEqual([], self.check('let_go()\n', 'c/b.py'))
