# SPDX-License-Identifier: Apache-2.0

"""Servers in events and in the history of balloons."""

import re
import time

import ddt

from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_lib.tests import balloon_reports
from vsched_ui.tests import fleet
from vsched_ui.tests import host_reports
from vsched_ui.tests import page_case

HOST = fleet.host_name(1)
#: A server that each list is about, and another one.
SERVER = fleet.instance_uuid(1, 4)
OTHER = fleet.instance_uuid(1, 5)
#: An instance without metadata of Nova.
NAMELESS = fleet.instance_uuid(2, 1)
EVENTS = ('/events', 'Events', 'Read events of this server')
HISTORY = (
    '/balloons',
    'History of balloons',
    'Read the history of this server',
)
INCOMPLETE = 'The name of a server is compared as a whole'


@ddt.ddt
class TestServers(page_case.PageCase):
    """Each list has rows of two servers, and further rows."""

    hosts = 1

    @classmethod
    def populate(cls):
        now = time.time()
        (host,) = cls.service.hosts
        host.send(
            events=tuple(
                base.event(
                    now - 300,
                    code='vsched.drift.repaired',
                    severity=severity,
                    instance_uuid=uuid,
                    detail='vCPU 1 had another period',
                )
                for uuid in (SERVER, OTHER)
                for severity in (
                    messages.Severity.WARNING,
                    messages.Severity.ERROR,
                )
            ),
            balloon_changes=tuple(
                balloon_reports.change(
                    uuid, started_at=now - 300, vcpus=2, before_vcpus=2
                )
                for uuid in (SERVER, OTHER)
            ),
        )
        nameless = cls.add_host(
            2, messages.InstanceInfo(NAMELESS, 'instance-00020001', 2)
        )
        nameless.send(events=(base.event(now - 200, instance_uuid=NAMELESS),))

    def server(self, uuid=SERVER):
        """Return an instance as the API has it."""
        return self.request('GET', '/v1/instances/' + uuid).json()['instance']

    def rows(self, tab, label):
        """Return the rows of a list."""
        return tab.page.get_by_role('grid', name=label, exact=True).locator(
            'tbody tr'
        )

    def links(self, tab, label):
        """Return the links to instances in the rows of a list."""
        return self.rows(tab, label).locator('td[data-label=Instance] a')

    def names(self, tab, label):
        """Return what the instances in a list are called."""
        return set(self.links(tab, label).all_inner_texts())

    def wait_for_server(self, tab, label, count):
        """Wait until a list has rows of the server only."""
        links = self.links(tab, label)
        self.chromium.expect(links).to_have_text(
            [self.server()['server_name']] * count
        )
        self.chromium.expect(self.rows(tab, label)).to_have_count(count)

    @ddt.data(EVENTS, HISTORY)
    @ddt.unpack
    def test_rows_name_their_server(self, path, label, _):
        tab = self.tab(path)
        name = self.server()['server_name']
        link = self.links(tab, label).filter(has_text=name).first
        link.wait_for()
        self.assertEqual(SERVER, link.get_attribute('title'))
        self.check(tab)
        link.click()
        self.see_heading(tab, name)
        self.assertTrue(tab.page.url.endswith('/instances/' + SERVER))
        # Its own view has the same list.
        self.links(tab, label).first.wait_for()
        self.assertEqual({name}, self.names(tab, label))
        self.check(tab)

    def test_rows_without_a_name(self):
        tab = self.tab('/events')
        started = self.rows(tab, 'Events').filter(
            has_text='vsched.agent.started'
        )
        # The beginning of its UUID; none where no instance is concerned.
        self.chromium.expect(started.get_by_text(NAMELESS[:8])).to_have_count(
            1
        )
        cells = started.locator('td[data-label=Instance]')
        self.assertIn('–', cells.all_inner_texts())
        # A name is data.
        self.see(tab, host_reports.HOSTILE)
        self.assertEqual(
            'undefined', tab.page.evaluate('typeof window.hostile')
        )

    @ddt.data(EVENTS, HISTORY)
    @ddt.unpack
    def test_what_was_read_is_found_and_sorted_by_server(self, path, label, _):
        tab = self.tab(path)
        self.links(tab, label).first.wait_for()
        of_server = 2 if label == 'Events' else 1
        server = self.server()
        for words in (
            server['server_name'],
            SERVER,
            '%(project_id)s %(flavor_name)s %(server_name)s' % server,
        ):
            tab.page.get_by_label('Filter ' + label, exact=True).fill(words)
            self.wait_for_server(tab, label, of_server)
        # Those of this fleet end so.
        tab.page.get_by_label('Filter ' + label, exact=True).fill('-0001-0')
        links = self.links(tab, label)
        links.filter(
            has_text=self.server(OTHER)['server_name']
        ).first.wait_for()
        names = sorted(links.all_inner_texts())
        self.assertLess(2, len(names))
        grid = tab.page.get_by_role('grid', name=label, exact=True)
        grid.get_by_role('button', name='Instance', exact=True).click()
        self.chromium.expect(links).to_have_text(names)
        self.chromium.expect(
            grid.locator('th', has_text='Instance')
        ).to_have_attribute('aria-sort', 'ascending')
        self.check(tab)

    def ask(self, tab, label, text):
        """Read one server; return the query that is sent."""
        field = tab.page.get_by_label(label, exact=True)
        field.fill(text)
        with tab.page.expect_request(
            # Others begin with the time, or with the length of the page.
            re.compile(r'/v1/(events|balloons/history)\?(?!start|limit)')
        ) as found:
            field.press('Enter')
        return found.value.url.partition('?')[2]

    @ddt.data(EVENTS, HISTORY)
    @ddt.unpack
    def test_one_server_is_read_by_its_name(self, path, label, filter_label):
        tab = self.tab(path)
        self.links(tab, label).first.wait_for()
        count = 2 if label == 'Events' else 1
        name = self.server()['server_name']
        self.assertIn('server_name=' + name, self.ask(tab, filter_label, name))
        self.wait_for_server(tab, label, count)
        self.check(tab)
        # The address has it, for others to open.
        self.assertIn('server=' + name, tab.page.url)
        tab.page.reload()
        self.wait_for_server(tab, label, count)
        field = tab.page.get_by_label(filter_label, exact=True)
        self.assertEqual(name, field.input_value())
        tab.page.get_by_role('button', name='Reset', exact=True).click()
        other = self.server(OTHER)['server_name']
        self.links(tab, label).filter(has_text=other).first.wait_for()
        self.assertNotIn('server=', tab.page.url)
        self.chromium.expect(field).to_have_value('')
        self.check(tab)

    @ddt.data(EVENTS, HISTORY)
    @ddt.unpack
    def test_one_server_is_read_by_its_uuid(self, path, label, filter_label):
        tab = self.tab(path)
        self.links(tab, label).first.wait_for()
        self.assertIn(
            'instance_uuid=' + SERVER,
            self.ask(tab, filter_label, ' %s ' % SERVER.upper()),
        )
        self.wait_for_server(tab, label, 2 if label == 'Events' else 1)

    @ddt.data(EVENTS, HISTORY)
    @ddt.unpack
    def test_a_part_of_a_name(self, path, label, filter_label):
        tab = self.tab(path)
        self.links(tab, label).first.wait_for()
        self.ask(tab, filter_label, self.server()['server_name'][:-1])
        self.see(tab, INCOMPLETE, exact=False)
        self.assertEqual(0, self.rows(tab, label).count())
        self.check(tab)

    def test_one_server_and_one_severity(self):
        name = self.server()['server_name']
        tab = self.tab('/events?server=' + name)
        self.wait_for_server(tab, 'Events', 2)
        tab.page.get_by_label(
            'Read events of this severity', exact=True
        ).select_option('warning')
        self.wait_for_server(tab, 'Events', 1)
        self.assertIn('severity=warning', tab.page.url)
        self.assertIn('server=' + name, tab.page.url)
        self.ask(tab, EVENTS[2], self.server(OTHER)['server_name'])
        self.chromium.expect(self.links(tab, 'Events')).to_have_text(
            [self.server(OTHER)['server_name']]
        )
        self.check(tab)
