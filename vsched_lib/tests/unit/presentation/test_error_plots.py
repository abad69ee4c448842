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

"""The pictures of an error profile."""

from xml.etree import ElementTree

from oslotest import base

from vsched_lib.presentation import error_plots
from vsched_lib.tests import error_profiles


class RenderTestCase(base.BaseTestCase):
    def test_every_figure_in_every_form(self):
        profile = error_profiles.full(windows=20)
        for figure in error_plots.FIGURES:
            ElementTree.fromstring(
                error_plots.render(profile, figure, 'svg'))
            self.assertTrue(error_plots.render(
                profile, figure, 'png').startswith(b'\x89PNG\r\n'))

    def test_no_such_picture(self):
        profile = error_profiles.profile([])
        self.assertRaises(
            ValueError, error_plots.render, profile, 'pdf', 'svg')
        self.assertRaises(
            ValueError, error_plots.render, profile, 'cdf', 'pdf')
