# SPDX-License-Identifier: Apache-2.0

"""Tables that come from the code, so that no page can fall behind it."""

from collections.abc import Iterable
from collections.abc import Sequence
import importlib
import typing as ty

from docutils import nodes
from docutils.parsers import rst
from docutils import statemachine

from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs


class Table(rst.Directive):
    """Base of the tables below."""

    head: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()

    def rows(self) -> Iterable[Sequence[str]]:
        """The cells, as reStructuredText."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        lines = ['.. list-table::', '   :header-rows: 1']
        if self.widths:
            lines.append('   :widths: ' + ' '.join(map(str, self.widths)))
        lines.append('')
        for row in [self.head, *self.rows()]:
            for number, cell in enumerate(row):
                lines.append(
                    ('   %s - %s' % (' ' if number else '*', cell)).rstrip()
                )
        node = nodes.Element()
        self.state.nested_parse(
            statemachine.StringList(lines, 'vsched_tables'),
            self.content_offset,
            node,
        )
        return list(node.children)


class ExtraSpecs(Table):
    """Every extra spec, from its one table."""

    head = ('Key', 'Accepted', 'Default', 'Meaning')
    widths = (20, 25, 10, 45)

    def rows(self) -> Iterable[Sequence[str]]:
        for spec in extra_specs.TABLE.values():
            default = spec.default
            if isinstance(default, bool):
                default = str(default).lower()
            meaning = spec.help
            if spec.needs:
                meaning += ' Needs ``%s``.' % (
                    extra_specs.TABLE[spec.needs].name
                )
            yield (
                '``%s``' % spec.name,
                spec.accepted,
                '' if default is None else '``%s``' % default,
                meaning,
            )


class Codes(Table):
    """Codes of errors, causes and events, with what to do about them.

    The content has one paragraph for each: the member's name, a colon, and
    the text. A code that is missing or unknown is an error.
    """

    head = ('Code', 'What it means and what to do')
    widths = (35, 65)
    has_content = True
    #: Names explained so far in this build, over all tables.
    seen: ty.ClassVar[set[str]] = set()

    def rows(self) -> Iterable[Sequence[str]]:
        for paragraph in '\n'.join(self.content).split('\n\n'):
            name, _, text = ' '.join(paragraph.split()).partition(': ')
            if name not in errors.Code.__members__ or not text:
                raise self.error('%r is no code with a text' % paragraph)
            self.seen.add(name)
            yield '``%s``' % errors.Code[name].value, text


def _check_codes(_app: ty.Any, _env: ty.Any) -> None:
    from sphinx.util import logging

    # Undefined is what a reader of a future version's code sees.
    missing = set(errors.Code.__members__) - Codes.seen - {'UNDEFINED'}
    if Codes.seen and missing:
        logging.getLogger(__name__).warning(
            'no page explains %s', ', '.join(sorted(missing))
        )


class Operations(Table):
    """What the REST service offers, from its policies.

    Arguments are the nouns to show; none shows all.
    """

    head = ('Operation', 'What it does', 'Who may')
    widths = (35, 40, 25)
    optional_arguments = 20

    def rows(self) -> Iterable[Sequence[str]]:
        policies = importlib.import_module('vsched_api.policies')
        for rule in policies.list_rules():
            for operation in getattr(rule, 'operations', ()):
                if self.arguments and (
                    rule.name.split(':')[1] not in self.arguments
                ):
                    continue
                yield (
                    '``%s %s``' % (operation['method'], operation['path']),
                    rule.description,
                    '``%s``' % rule.check_str,
                )


class Metrics(Table):
    """The metrics of one section, from their declarations."""

    head = ('Metric', 'Type', 'Labels', 'Meaning')
    widths = (36, 10, 14, 40)
    required_arguments = 1

    def rows(self) -> Iterable[Sequence[str]]:
        catalogue = importlib.import_module(
            'vsched_api.metric_families.catalogue'
        )
        for one in catalogue.SECTIONS[self.arguments[0]]:
            yield (
                '``%s``' % one.name,
                one.kind.value,
                ', '.join('``%s``' % label for label in one.labels),
                one.text,
            )


def setup(app: ty.Any) -> dict[str, ty.Any]:
    """Called by Sphinx."""
    app.add_directive('vsched-extra-specs', ExtraSpecs)
    app.add_directive('vsched-codes', Codes)
    app.add_directive('vsched-metrics', Metrics)
    app.add_directive('vsched-operations', Operations)
    app.connect('env-check-consistency', _check_codes)
    return {'version': '1', 'parallel_read_safe': False}
