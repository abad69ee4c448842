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
                        name.split('.')[0], sys.stdlib_module_names, path)
