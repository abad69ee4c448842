# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from oslotest import base

from vsched_agent.reporting import endpoint


class TestEndpoint(base.BaseTestCase):
    def test_announced_overrides_are_fetched(self):
        fetch = mock.Mock()
        endpoint.Endpoint(fetch, self.fail).overrides_changed({}, generation=3)
        fetch.assert_called_once_with()

    def test_announced_jobs_are_fetched(self):
        fetch = mock.Mock()
        endpoint.Endpoint(self.fail, fetch).jobs_changed({}, generation=3)
        fetch.assert_called_once_with()
