# SPDX-License-Identifier: Apache-2.0

"""The quick start as a process, and the page over the VMs that it runs."""

import json
import os
import signal
import subprocess
import sys
import time
from urllib import parse

import fixtures as base_fixtures
import libvirt
import requests
from testtools import content

from vsched_agent.tests import fixtures
from vsched_agent.tests.functional import agent_guests
from vsched_api.tests import doors
from vsched_ui.tests import browser
from vsched_ui.tests import page_case

#: To boot five guests on one CPU of two takes most of it.
START_S = 600
END_S = 180
#: Of this the shortest phases have a quarter: longer than a machine stands
#: still, so that some of their seconds are measured.
MEASURED_S = 40
PROMISED = 'vsched-promised'
#: The kernel holds a reservation to the tick.
TOLERANCE = 0.02
#: Changes that are timed until the page shows them applied, in percent.
SHARES_PCT = (25, 45, 35, 55, 30)


class TestQuickstart(page_case.BrowserCase):
    # What people open the page with.
    browsers = browser.WINDOWED

    def setUp(self):
        super().setUp()
        self.useFixture(base_fixtures.Timeout(2 * START_S, gentle=True))
        fixtures.require_libvirt(self)
        fixtures.require_deadline(self)
        self.folder = self.useFixture(base_fixtures.TempDir()).path
        self.summary = os.path.join(self.folder, 'summary.json')
        self.process = subprocess.Popen(
            [
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'vsched_standalone.cmd.quickstart',
                '--guest-dir',
                str(fixtures.GUEST_DIR),
                '--uri',
                fixtures.URI,
                '--seconds',
                str(MEASURED_S),
                '--json',
                self.summary,
                '--keep',
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, 'TMPDIR': self.folder},
        )
        self.addCleanup(self.process.stdout.close)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        # It stops what it has started, also when this test fails.
        self.addCleanup(self.end)
        self.lines = []
        # The process cannot be stopped without its VMs: what the page has of
        # it goes through a door.
        self.direct_url = self.await_page()
        address = parse.urlsplit(self.direct_url)
        self.door = doors.Door((address.hostname, address.port))
        self.door.open()
        self.addCleanup(self.door.shut)
        self.url = 'http://127.0.0.1:%d' % self.door.port

    def await_page(self):
        """Return the root of the API once everything is measured."""
        stolen_s = agent_guests.stolen_s()
        for line in self.process.stdout:
            self.lines.append(line)
            if line.startswith('1/'):
                stolen_s = agent_guests.stolen_s()
            if line.startswith('running until '):
                self.stolen_s = agent_guests.stolen_s() - stolen_s
                return line.split()[4].removesuffix('/ui')
        return self.fail('it has ended:\n' + ''.join(self.lines))

    def end(self):
        """Return the exit status and all that was printed."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            rest, _ = self.process.communicate(timeout=END_S)
            self.lines.append(rest)
        return self.process.returncode, ''.join(self.lines)

    def test_shares_and_the_page_over_its_vms(self):
        with open(self.summary, encoding='utf-8') as file:
            found = json.load(file)['metrics']
        for name, promised in (
            ('deadline_got_mean', 0.6),
            ('patched_got_mean', 0.3),
        ):
            self.assertAlmostEqual(
                promised,
                found[name],
                # All of it may be of one phase.
                delta=TOLERANCE + self.stolen_s / (MEASURED_S / 4),
            )

        # It is there while the VMs are measured, without --keep as well.
        self.assertIn('page: %s/ui\n' % self.direct_url, self.lines)

        self.open_instance()
        self.change_by_rest()
        self.change_by_the_form()
        self.time_changes()
        self.open_other_views()
        self.open_what_is_empty()
        self.audit_without_placement()
        self.evaluate()
        self.cut_off()

        status, output = self.end()
        self.assertEqual(0, status, output)
        self.assertIn('everything that was started is stopped', output)
        self.assertEqual(['summary.json'], os.listdir(self.folder))
        connection = libvirt.open(fixtures.URI)
        self.addCleanup(connection.close)
        self.assertRaises(
            libvirt.libvirtError, connection.lookupByName, PROMISED
        )

    def reservation(self):
        """Return the only one there is."""
        (one,) = self.request('GET', '/v1/reservations').json()['reservations']
        return one

    def await_enforced(self, runtime_us, backend):
        """Wait until the kernel was seen to have what is wanted."""
        give_up = time.monotonic() + END_S
        while True:
            found = self.reservation()
            enforced = found['enforced'] or {}
            if (enforced.get('runtime_us'), enforced.get('backend')) == (
                runtime_us,
                backend,
            ):
                return
            self.assertLess(time.monotonic(), give_up, found)
            time.sleep(0.2)

    def open_instance(self):
        # The last phase is held by a quota.
        self.uuid = self.reservation()['instance_uuid']
        self.view = self.tab('/instances/' + self.uuid)
        self.see_heading(self.view, PROMISED)
        self.see(self.view, '60.0 %', exact=False)
        self.see(self.view, 'by cfs')
        # Charts of what its agent has sampled.
        self.view.page.locator('canvas').first.wait_for()
        self.check(self.view)

    def change_by_rest(self):
        self.request(
            'PATCH',
            '/v1/reservations/' + self.uuid,
            json={'runtime_us': 8_000, 'backend': 'deadline'},
        ).raise_for_status()
        self.see(self.view, '40.0 %', exact=False)
        self.see(self.view, 'by deadline')
        self.await_enforced(8_000, 'deadline')

    def change_by_the_form(self):
        self.button(self.view, 'Change reservation').click()
        share = self.view.page.get_by_label('Share of a CPU for each vCPU (%)')
        share.fill('50')
        self.see(self.view, 'It fits on', exact=False)
        self.view.page.get_by_role('button', name='Change', exact=True).click()
        self.view.page.get_by_role('dialog').wait_for(state='hidden')
        self.see(self.view, '50.0 %', exact=False)
        self.await_enforced(10_000, 'deadline')
        self.check(self.view)

    def applied(self, share_pct):
        """Return what shows that the kernel has a share for the VM."""
        return (
            self.view.page.locator('.vs-tile', has_text='Enforced')
            .filter(has_text='0.%02d CPU' % share_pct)
            .filter(has_text='by deadline')
        )

    def time_changes(self):
        """Record how soon the page shows that a change is in force."""
        took_s = []
        for share_pct in SHARES_PCT:
            self.request(
                'PATCH',
                '/v1/reservations/' + self.uuid,
                json={'runtime_us': share_pct * 200},
            ).raise_for_status()
            answered = time.monotonic()
            self.applied(share_pct).wait_for()
            took_s.append(round(time.monotonic() - answered, 3))
            self.see(self.view, 'applied')
            self.await_enforced(share_pct * 200, 'deadline')
        self.addDetail(
            'seconds from the answer to a PATCH to "applied" on the page',
            content.json_content(took_s),
        )
        self.check(self.view)

    def open_other_views(self):
        self.host = host = self.reservation()['host']
        at_host = '/hosts/%s?tab=' % host
        for path, heading, text in (
            ('', 'Overview', host),
            ('/hosts', 'Hosts', host),
            ('/hosts/' + host, host, PROMISED),
            (at_host + 'error', 'Error of CPU allocation', 'Measure now'),
            (at_host + 'overhead', 'Cost of I/O', 'Measure now'),
            (at_host + 'doctor', 'Doctor', 'The agent reports.'),
            (at_host + 'events', host, 'vsched.reservation.override_set'),
            ('/reservations', 'Reservations', PROMISED),
            ('/events', 'Events', 'vsched.reservation.override_set'),
            ('/evidence', 'Evidence', host),
        ):
            with self.subTest(path):
                tab = self.tab(path)
                self.see_heading(tab, heading)
                self.see(tab, text, exact=False)
                self.check(tab)
                tab.close()

    def open_what_is_empty(self):
        """Open views that have nothing of these VMs."""
        for path, heading, text in (
            ('/hosts/%s?tab=jobs' % self.host, self.host, 'No jobs'),
            ('/jobs', 'Jobs', 'No jobs'),
            ('/balloons', 'Balloons', 'No instance may be ballooned'),
        ):
            with self.subTest(path):
                tab = self.tab(path)
                self.see_heading(tab, heading)
                self.see(tab, text)
                self.check(tab)
                tab.close()

    def audit_without_placement(self):
        tab = self.tab('/hosts/%s?tab=doctor' % self.host)
        self.see(tab, 'Not compared yet.')
        self.button(tab, 'Compare now').click()
        tab.page.get_by_role('alert').filter(
            has_text='vsched.placement.unavailable'
        ).wait_for()
        self.see(tab, 'It could not be compared.')
        self.assertEqual([], tab.axe())
        # The browser reports the status of that answer, and nothing else.
        self.assertEqual(
            [], [one for one in tab.errors if 'Failed to load' not in one]
        )
        tab.close()

    def evaluate(self):
        tab = self.tab('/whatif')
        tab.page.get_by_label('Share of a CPU for each vCPU (%)').fill('20')
        self.button(tab, 'Evaluate').click()
        found = tab.page.get_by_role('grid', name='Evaluated hosts')
        self.chromium.expect(found).to_contain_text(self.host)
        self.check(tab)
        tab.close()

    def cut_off(self):
        """Cut the page off, change something, and let it through again."""
        away = self.banner(self.view)
        self.door.shut()
        try:
            away.wait_for()
            # What was read before is still there.
            self.see_heading(self.view, PROMISED)
            self.assertEqual([], self.view.axe())
            requests.patch(
                self.direct_url + '/v1/reservations/' + self.uuid,
                json={'runtime_us': 8_000},
                timeout=END_S,
            ).raise_for_status()
        finally:
            self.door.open()
        away.wait_for(state='hidden')
        self.applied(40).wait_for()
