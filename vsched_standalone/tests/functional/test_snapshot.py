# SPDX-License-Identifier: Apache-2.0

"""From an agent's report to what a filter knows, through real HTTP."""

import socket
import threading
import time
from wsgiref import simple_server

from oslo_config import cfg

from nova_filters import cache
from nova_filters import conf as options
from nova_filters import flavor_request
from nova_filters import judging
from nova_filters import source
from nova_filters.tests import fakes
from vsched_api.tests import base
from vsched_lib.tests import ports

#: Only a hang takes longer, in seconds.
PATIENCE_S = 120


class _Handler(simple_server.WSGIRequestHandler):
    def log_message(self, *arguments):
        """Nothing."""


class TestPropagation(base.TestCase):
    """The service with its database, and the cache of a scheduler."""

    def setUp(self):
        super().setUp()
        self.node = self.agent()
        self.port = ports.reserve()
        self.serve()
        self.cache = self.scheduler(timeout=PATIENCE_S)

    def scheduler(self, timeout):
        """What one of them keeps; it asks often."""
        conf = cfg.ConfigOpts()
        options.register_opts(conf)
        conf([], default_config_files=[])
        for name, value in (
            ('auth_type', 'none'),
            ('timeout', timeout),
            ('endpoint_override', 'http://127.0.0.1:%d' % self.port),
        ):
            conf.set_override(name, value, 'vsched')
        made = cache.Cache(lambda: source.Source(conf), 0.05)
        self.addCleanup(made.stop)
        return made

    def passes(self, policy, max_age=60.0):
        """Whether a host may be used; never asks anybody."""
        known = self.cache.known()
        passed, _ = judging.filter_hosts(
            [fakes.State(host=base.HOST)],
            flavor_request.parse({'vsched:cpu_runtime_us': '10000'}, 2),
            known,
            known.stale(time.monotonic(), max_age),
            judging.Rules(judging.reservation, policy == 'pass', False),
        )
        return bool(passed)

    def serve(self):
        """A server that ends when the test does, or by ``close``."""
        made = simple_server.make_server(
            '127.0.0.1',
            self.port,
            self.client().application,
            handler_class=_Handler,
        )
        thread = threading.Thread(target=made.serve_forever)
        thread.start()

        def close():
            if thread.is_alive():
                made.shutdown()
                thread.join()
                made.server_close()

        self.close = close
        self.addCleanup(close)

    def wait(self, wanted):
        """Wait until this is true of what is known."""
        deadline = time.monotonic() + PATIENCE_S
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
        known = self.wait(
            lambda known: known.by_name[base.HOST].free_mcpu == 900
        )
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
        self.serve()
        self.wait(lambda known: known.by_name[base.HOST].free_mcpu == 900)

    def away(self):
        """A change is made while the service is; then all goes by policy."""
        before = self.cache.known()
        self.assertTrue(self.passes('fail'))
        # What is known is used until it is too old, whatever the policy.
        self.tell(admitted_mcpu=900)
        self.wait(lambda _: self.cache.known().stale(time.monotonic(), 0.5))
        self.assertEqual(before.hosts, self.cache.known().hosts)
        self.assertTrue(self.passes('fail'))
        self.assertTrue(self.passes('pass', max_age=0.5))
        self.assertFalse(self.passes('fail', max_age=0.5))

    def catches_up(self):
        """By itself: there is no room for another instance by now."""
        self.serve()
        self.wait(lambda known: known.by_name[base.HOST].free_mcpu == 900)
        self.assertFalse(self.passes('pass'))
        self.wait(
            lambda _: not self.cache.known().stale(time.monotonic(), 0.5)
        )

    def test_boots_go_on_while_the_service_is_stopped(self):
        self.tell(admitted_mcpu=0)
        self.wait(lambda known: base.HOST in known.by_name)
        self.close()
        self.away()
        self.catches_up()

    def test_boots_go_on_while_the_service_hangs(self):
        self.cache = self.scheduler(timeout=1)
        self.tell(admitted_mcpu=0)
        self.wait(lambda known: base.HOST in known.by_name)
        self.close()
        # Takes connections, as the kernel does for it, and says nothing.
        with socket.create_server(('127.0.0.1', self.port)) as server:
            server.settimeout(PATIENCE_S)
            connection, _ = server.accept()
            with connection:
                self.away()
        self.catches_up()
