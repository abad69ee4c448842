# SPDX-License-Identifier: Apache-2.0

"""The model needs nothing but Python."""

import ast
import pathlib
import sys

from oslotest import base

from vsched_lib import model


class PurityTestCase(base.BaseTestCase):
    def test_standard_library_only(self):
        folder = pathlib.Path(model.__file__).parent
        modules = sorted(folder.rglob('*.py'))
        self.assertGreater(len(modules), 3)
        for path in modules:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom):
                    self.assertEqual(0, node.level, path)
                    names = [node.module]
                else:
                    continue
                for name in names:
                    if name.startswith('vsched_lib.model'):
                        continue
                    self.assertIn(
                        name.split('.')[0], sys.stdlib_module_names, path
                    )
