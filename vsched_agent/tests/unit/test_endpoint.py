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

from unittest import mock

from oslotest import base

from vsched_agent import endpoint


class TestEndpoint(base.BaseTestCase):

    def test_news_of_overrides_have_them_fetched(self):
        fetch = mock.Mock()
        endpoint.Endpoint(fetch, self.fail).overrides_changed(
            {}, generation=3)
        fetch.assert_called_once_with()

    def test_and_news_of_jobs_the_jobs(self):
        fetch = mock.Mock()
        endpoint.Endpoint(self.fail, fetch).jobs_changed({}, generation=3)
        fetch.assert_called_once_with()
