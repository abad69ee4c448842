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

"""From an agent's report to what a filter knows, through real HTTP."""

import threading
import time
from wsgiref import simple_server

from oslo_config import cfg

from nova_filters import cache
from nova_filters import conf as options
from nova_filters import source
from vsched_api.tests import base


class _Handler(simple_server.WSGIRequestHandler):
    def log_message(self, *arguments):
        """Nothing."""


class TestPropagation(base.TestCase):
    """The service with its database, and the cache of a scheduler."""

    def setUp(self):
        super().setUp()
        self.node = self.agent()
        self.port = self.serve(0)
        conf = cfg.ConfigOpts()
        options.register_opts(conf)
        conf([], default_config_files=[])
        for name, value in (
                ('auth_type', 'none'), ('timeout', 5),
                ('endpoint_override', 'http://127.0.0.1:%d' % self.port)):
            conf.set_override(name, value, 'vsched')
        self.cache = cache.Cache(lambda: source.Source(conf), 0.05)
        self.addCleanup(self.cache.stop)

    def serve(self, port):
        """A server that ends when the test does, or by ``close``."""
        made = simple_server.make_server(
            '127.0.0.1', port, self.client().application,
            handler_class=_Handler)
        thread = threading.Thread(target=made.serve_forever)
        thread.start()

        def close():
            if thread.is_alive():
                made.shutdown()
                thread.join()
                made.server_close()

        self.close = close
        self.addCleanup(close)
        return made.server_port

    def wait(self, wanted):
        """Wait until this is true of what is known."""
        deadline = time.monotonic() + 30
        while not wanted(self.cache.known().hosts):
            if time.monotonic() > deadline:
                self.fail('known: %s' % (self.cache.known(),))
            time.sleep(0.01)
        return self.cache.known().hosts

    def tell(self, **changes):
        self.node.send(listed=False, host_info=base.host_info(**changes))

    def test_what_an_agent_reports_is_known(self):
        self.tell()
        known = self.wait(lambda known: base.HOST in known.by_name)
        self.assertEqual(1_200, known.by_name[base.HOST].free_mcpu)
        self.tell(admitted_mcpu=900)
        known = self.wait(lambda known:
                          known.by_name[base.HOST].free_mcpu == 900)
        self.now += 60
        self.wait(lambda known: base.HOST in known.down)

    def test_a_service_that_is_away_and_back(self):
        self.tell()
        self.wait(lambda known: base.HOST in known.by_name)
        self.close()
        before = self.cache.known()
        time.sleep(0.3)
        self.assertEqual(before.hosts, self.cache.known().hosts)
        self.tell(admitted_mcpu=900)
        self.serve(self.port)
        self.wait(lambda known: known.by_name[base.HOST].free_mcpu == 900)
