# SPDX-License-Identifier: Apache-2.0

"""Every event that the documentation promises is emitted by somebody."""

import ast
import pathlib
import re

from oslotest import base

from vsched_api.operations import notices
from vsched_lib.contract import errors

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_PACKAGES = ('vsched_agent', 'vsched_api', 'vsched_lib')
_DECLARED = _ROOT / 'vsched_lib' / 'contract' / 'errors.py'


def _events() -> set[str]:
    """Names of the codes that the documentation lists as events."""
    text = (_ROOT / 'doc/source/admin/codes.rst').read_text(encoding='utf-8')
    section = re.split(r'^Events\n=+$', text, flags=re.MULTILINE)[1]
    section = re.split(r'^=+$', section, flags=re.MULTILINE)[0]
    return set(re.findall(r'^   ([A-Z][A-Z_]+):', section, re.MULTILINE))


def _used(*packages: str) -> set[str]:
    """Names of the codes that production code refers to, as an expression."""
    found = set()
    for package in packages or _PACKAGES:
        for path in (_ROOT / package).rglob('*.py'):
            # Metrics count events that others emit.
            if {'tests', 'metric_families'} & set(path.parts) or (
                path == _DECLARED
            ):
                continue
            for node in ast.walk(ast.parse(path.read_bytes())):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.ctx, ast.Load)
                    and (
                        (
                            isinstance(node.value, ast.Attribute)
                            and node.value.attr == 'Code'
                        )
                        or (
                            isinstance(node.value, ast.Name)
                            and node.value.id == 'Code'
                        )
                    )
                ):
                    found.add(node.attr)
    return found


class TestEventCodes(base.BaseTestCase):
    def test_every_event_is_emitted(self):
        events = _events()
        self.assertGreater(len(events), 20)
        self.assertEqual(set(), events - set(errors.Code.__members__))
        self.assertEqual(set(), events - _used())

    def test_hosts_have_no_code_of_the_collectors_events(self):
        """Whose events have them, only collector and REST service say."""
        events = _events()
        self.assertEqual(
            {one.name for one in notices.OWN}, events & _used('vsched_api')
        )
        self.assertEqual(
            events - _used('vsched_api'), events & _used('vsched_agent')
        )

    def test_every_code_is_used(self):
        self.assertEqual(set(), set(errors.Code.__members__) - _used())
