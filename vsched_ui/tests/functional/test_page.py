# SPDX-License-Identifier: Apache-2.0

"""The page over a fleet, as its users see it."""

import json
import pathlib
import re
import time

from vsched_ui.tests import fleet
from vsched_ui.tests import host_reports
from vsched_ui.tests import measurements
from vsched_ui.tests import page_case
from vsched_ui.tests import views

FIRST = fleet.host_name(1)
HOSTILE = fleet.instance_uuid(1, 2)
CHANGED = fleet.instance_uuid(2, 3)
#: A host with an instance whose reservation is refused.
REFUSING = 22
PUBLISHED = (
    pathlib.Path(__file__).resolve().parents[2] / 'src' / 'published.json'
)


class TestViews(page_case.PageCase):
    """Each view by itself."""

    def open(self, path, heading, text):
        tab = self.tab(path)
        self.see_heading(tab, heading)
        self.see(tab, text, exact=False)
        return tab

    def test_each_is_whole_and_accessible_in_both_themes(self):
        for path, heading, text in views.VIEWS:
            with self.subTest(path):
                tab = self.open(path, heading, text)
                self.check(tab)
                tab.page.emulate_media(color_scheme='dark')
                self.chromium.expect(tab.page.locator('html')).to_have_class(
                    'pf-v6-theme-dark'
                )
                self.check(tab)
                tab.close()

    def test_a_path_without_a_view(self):
        tab = self.tab('/nowhere')
        self.see_heading(tab, 'There is no such view')
        self.check(tab)

    def test_colours_are_chosen_and_kept(self):
        tab = self.tab('/jobs')
        self.button(tab, 'Dark').click()
        tab.page.reload()
        self.see_heading(tab, 'Jobs')
        self.assertEqual(
            'pf-v6-theme-dark', tab.page.locator('html').get_attribute('class')
        )

    def test_the_name_of_a_server_is_text(self):
        tab = self.tab('/instances/' + HOSTILE)
        self.see_heading(tab, host_reports.HOSTILE)
        self.go(tab, '/hosts/' + FIRST)
        self.see(tab, host_reports.HOSTILE)
        # The chart has drawn its name.
        tab.page.locator('canvas').first.wait_for()
        self.assertEqual(
            'undefined', tab.page.evaluate('typeof window.hostile')
        )
        self.assertEqual(0, tab.page.locator('img[src="x"]').count())
        self.check(tab)


#: Clicks on a button right after the address has changed, before that is
#: shown.
_CLICK_AT_A_CHANGE = """(button) => {
  const real = history.replaceState.bind(history);
  history.replaceState = (...values) => {
    history.replaceState = real;
    real(...values);
    queueMicrotask(() => button.click());
  };
}"""


class TestTables(page_case.PageCase):
    """Sorting, filtering, pages and links."""

    def names(self, tab):
        return tab.page.locator('tbody tr td:first-child').all_inner_texts()

    def wait_for_names(self, tab, expected):
        self.chromium.expect(
            tab.page.locator('tbody tr td:first-child')
        ).to_have_text(expected)

    def test_filter_and_facet(self):
        tab = self.tab('/hosts')
        self.see(tab, FIRST)
        tab.page.get_by_label('Filter Hosts').fill('0007')
        self.wait_for_names(tab, [fleet.host_name(7)])
        # The address has it, for others to open.
        tab.page.wait_for_url('**hosts.q=0007**')
        tab.page.reload()
        self.wait_for_names(tab, [fleet.host_name(7)])
        self.button(tab, 'Clear filters').click()
        tab.page.get_by_label('State of Hosts').select_option('down')
        self.wait_for_names(tab, [fleet.host_name(37)])
        tab.page.get_by_label('Filter Hosts').fill('none of them')
        self.see(tab, 'Nothing matches the filters')
        self.check(tab)

    def test_a_change_before_the_last_one_is_shown(self):
        tab = self.tab('/hosts')
        self.see(tab, FIRST)
        tab.page.get_by_role('button', name='Host', exact=True).evaluate(
            _CLICK_AT_A_CHANGE
        )
        # The address has what was typed after a pause; the click follows.
        tab.page.get_by_label('Filter Hosts').fill('node-003')
        tab.page.wait_for_url('**hosts.dir=desc**')
        self.assertIn('hosts.q=node-003', tab.page.url)
        self.wait_for_names(
            tab, [fleet.host_name(number) for number in range(39, 29, -1)]
        )
        self.check(tab)

    def test_a_list_of_which_only_a_part_was_read(self):
        tab = self.chromium.tab()
        self.addCleanup(tab.close)
        # Read again by itself, the list would take the button away.
        tab.stop_polls()
        rest = re.compile(r'/v1/reservations\?.*marker=')
        tab.page.route(rest, lambda route: route.fulfill(status=500))
        self.go(tab, '/reservations')
        self.see(tab, 'This could not be read')
        self.see(tab, 'The list is not complete: 100 rows were read.')
        tab.page.get_by_label('Filter Reservations').fill('none of them')
        self.chromium.expect(tab.page.locator('tbody tr')).to_have_count(0)
        # It may be among the others.
        self.chromium.expect(
            tab.page.get_by_text('Nothing matches the filters')
        ).to_have_count(0)
        self.assertEqual([], tab.axe())
        tab.page.unroute(rest)
        self.button(tab, 'again').click()
        self.see(tab, 'Nothing matches the filters')

    def test_sort_by_the_keyboard(self):
        tab = self.tab('/hosts')
        self.see(tab, FIRST)
        tab.page.get_by_role('button', name='Host', exact=True).focus()
        tab.page.keyboard.press('Enter')
        self.see(tab, fleet.host_name(40))
        self.assertEqual(fleet.host_name(40), self.names(tab)[0])
        tab.page.get_by_role('link', name=fleet.host_name(40)).focus()
        tab.page.keyboard.press('Enter')
        self.see_heading(tab, fleet.host_name(40))
        self.check(tab)

    def test_pages(self):
        tab = self.tab('/hosts')
        self.see(tab, FIRST)
        self.assertEqual(25, len(self.names(tab)))
        tab.page.get_by_role('button', name='Go to next page').click()
        self.see(tab, fleet.host_name(40))
        self.assertEqual(15, len(self.names(tab)))

    def test_instances_by_server_project_and_flavor(self):
        tab = self.tab('/reservations')
        uuid = fleet.instance_uuid(3, 2)
        # Neither of them has a column.
        for words in (uuid, 'instance-00030002'):
            tab.page.get_by_label('Filter Reservations').fill(words)
            self.chromium.expect(tab.page.locator('tbody tr')).to_have_count(1)
            link = tab.page.locator('tbody tr td:first-child a')
            self.chromium.expect(link).to_have_attribute('title', uuid)
            self.chromium.expect(link).to_have_text(re.compile('-0003-02$'))
        project = host_reports.PROJECTS[1]
        tab.page.get_by_label('Filter Reservations').fill(
            project + ' c2.share'
        )
        cells = tab.page.locator('tbody tr td[data-label=Project]')
        self.chromium.expect(cells.first).to_have_text(project)
        self.assertEqual({project}, set(cells.all_inner_texts()))
        self.button(tab, '^Flavor$').click()
        self.chromium.expect(
            tab.page.locator('th', has_text='Flavor')
        ).to_have_attribute('aria-sort', 'ascending')
        flavors = tab.page.locator(
            'tbody tr td[data-label=Flavor]'
        ).all_inner_texts()
        self.assertEqual(sorted(flavors), flavors)
        self.go(tab, '/hosts/%s' % fleet.host_name(3))
        self.see(tab, project)
        self.check(tab)
        self.go(tab, '/instances/' + uuid)
        self.see(tab, 'project ' + project, exact=False)
        self.check(tab)

    def test_instances_of_a_host_by_state(self):
        host = fleet.host_name(REFUSING)
        label = 'Instances of ' + host
        tab = self.tab('/hosts/' + host)
        rows = tab.page.get_by_role('grid', name=label).locator('tbody tr')
        self.chromium.expect(rows).to_have_count(5)
        state = tab.page.get_by_label('Reservation of ' + label)
        state.select_option('refused')
        self.chromium.expect(rows).to_have_count(1)
        self.chromium.expect(rows).to_contain_text('refused')
        enforced = tab.page.get_by_label('Enforced by of ' + label)
        enforced.select_option('deadline')
        self.see(tab, 'Nothing matches the filters')
        enforced.select_option('nothing')
        self.chromium.expect(rows).to_have_count(1)
        self.check(tab)

    def test_what_a_host_has_measured(self):
        tab = self.tab('/hosts/%s?tab=overhead' % FIRST)
        rows = tab.page.get_by_role('grid', name='Prices of I/O').locator(
            'tbody tr'
        )
        self.see(tab, 'packet received')
        tab.page.get_by_label('Filter Prices of I/O').fill('packet')
        self.chromium.expect(rows).to_have_count(2)
        self.check(tab)
        self.go(tab, '/hosts/%s?tab=error' % FIRST)
        label = re.compile('^Errors with ')
        rows = tab.page.get_by_role('grid', name=label).locator('tbody tr')
        self.chromium.expect(rows).to_have_count(5)
        # By what is shown, and not by the parts per million.
        tab.page.get_by_label(re.compile('^Filter Errors with ')).fill(
            '30.0 %'
        )
        self.chromium.expect(rows).to_have_count(1)
        self.check(tab)

    def test_from_the_largest_errors_to_all(self):
        tab = self.tab()
        tab.page.get_by_role('link', name='All certificates').click()
        self.see_heading(tab, 'Evidence')
        tab.page.wait_for_url('**/ui/evidence')
        rows = tab.page.get_by_role('region', name='Error certificates')
        # The first of them there as well.
        self.chromium.expect(rows.locator('tbody tr').first).to_contain_text(
            FIRST
        )
        self.check(tab)

    def test_skip_to_the_content(self):
        tab = self.tab('/hosts')
        self.see(tab, FIRST)
        tab.page.keyboard.press('Tab')
        tab.page.keyboard.press('Enter')
        self.assertEqual(
            'main', tab.page.evaluate('document.activeElement.id')
        )
        self.assertTrue(tab.page.url.endswith('/ui/hosts'))


class TestEvidence(page_case.PageCase):
    """What was measured, of this fleet and by the project."""

    def rows(self, tab, label):
        return tab.page.get_by_role('region', name=label).locator('tbody tr')

    def choose(self, tab, label, value):
        tab.page.get_by_label(label, exact=True).select_option(value)

    def test_it_is_in_the_menu(self):
        tab = self.tab('/jobs')
        tab.page.get_by_role('link', name='Evidence', exact=True).click()
        self.see_heading(tab, 'Published measurements')
        self.assertEqual('Evidence · vsched', tab.page.title())
        self.assertTrue(tab.page.url.endswith('/ui/evidence'))

    def test_certificates_and_why_they_are_not_in_force(self):
        tab = self.tab('/evidence')
        rows = self.rows(tab, 'Error certificates')
        expect = self.chromium.expect
        # Each host without a certificate has a row, and each backend that
        # was measured: the first host and the one of the quick run have two.
        expect(rows).to_have_count(25)
        self.choose(tab, 'Status of Error certificates', 'in force')
        expect(rows).to_have_count(4)
        # The worst comes first.
        expect(rows.first).to_contain_text(FIRST)
        expect(rows.first).to_contain_text('cfs')
        expect(rows.first).to_contain_text('1 h')
        expect(rows.nth(2)).to_contain_text(
            fleet.host_name(measurements.QUICK)
        )
        expect(rows.nth(2)).to_contain_text('0 of 4')
        for status, number, why in (
            ('withdrawn', measurements.WITHDRAWN, '5 reserved threads'),
            ('out of date', measurements.OUT_OF_DATE, 'the kernel'),
        ):
            self.choose(tab, 'Status of Error certificates', status)
            expect(rows).to_have_count(1)
            expect(rows.first).to_contain_text(fleet.host_name(number))
            expect(rows.first).to_contain_text(why)
        self.choose(tab, 'Status of Error certificates', 'withdrawn')
        expect(rows.first).to_contain_text(
            fleet.host_name(measurements.WITHDRAWN)
        )
        self.check(tab)
        rows.first.get_by_role('link', name='thorough').click()
        # What only the profile has.
        self.see_heading(tab, 'Error of CPU allocation')
        self.see(tab, '5 reserved threads')
        self.see(tab, 'was stolen from this host', exact=False)
        self.check(tab)

    def test_prices(self):
        tab = self.tab('/evidence')
        rows = self.rows(tab, 'Prices of I/O')
        expect = self.chromium.expect
        self.choose(tab, 'Status of Prices of I/O', 'in force')
        expect(rows).to_have_count(2)
        expect(rows.filter(has_text=FIRST)).to_contain_text('25 µs')
        # The other was measured by a job.
        expect(
            rows.filter(has_text=fleet.host_name(measurements.WITHDRAWN))
        ).to_contain_text('ago')
        self.choose(tab, 'Status of Prices of I/O', 'poor fit')
        expect(rows).to_have_count(1)
        expect(rows.first).to_contain_text('explains only 62 %')
        self.check(tab)
        rows.first.get_by_role('link', name='profile', exact=True).click()
        self.see_heading(tab, 'Cost of I/O')

    def test_every_published_target_with_its_verdict(self):
        found = json.loads(PUBLISHED.read_text(encoding='utf-8'))
        targets = [
            target
            for benchmark in found['benchmarks']
            for target in benchmark['targets']
        ]
        reached = [one for one in targets if one['missed_by'] == 0]
        missed = [one for one in targets if one['missed_by']]
        tab = self.tab('/evidence')
        rows = self.rows(tab, 'Published targets')
        tiles = tab.page.locator('.vs-tile__value')
        expect = self.chromium.expect
        expect(tiles.nth(0)).to_have_text(str(len(reached)))
        expect(tiles.nth(1)).to_have_text(str(len(missed)))
        for verdict, some in (('met', reached), ('missed', missed)):
            self.choose(tab, 'Verdict of Published targets', verdict)
            expect(rows).to_have_count(min(25, len(some)))
            expect(rows.first).to_contain_text(some[0]['metric'])
            expect(rows.first).to_contain_text(some[0]['target'])
        self.button(tab, 'Clear filters').click()
        tab.page.get_by_label('Filter Published targets').fill('drill gap_s')
        expect(rows.first).to_contain_text('= 0 s')
        self.check(tab)


class TestChanges(page_case.PageCase):
    """What changes elsewhere, and what the page changes."""

    def test_a_change_made_elsewhere_appears(self):
        view = self.tab('/instances/' + CHANGED)
        self.see_heading(view, 'Reserved and got')
        table = self.tab('/reservations?reservations.q=' + CHANGED)
        row = table.page.locator('tbody tr')
        row.get_by_text('flavor').wait_for()
        self.service.patch(CHANGED, runtime_us=7_420)
        self.see(view, '37.1 %', exact=False)
        row.get_by_text('37.1 %', exact=False).wait_for()
        row.get_by_text('override').wait_for()
        self.check(view)
        self.check(table)

    def test_usage_grows_while_it_is_watched(self):
        tab = self.tab('/hosts/' + FIRST)
        chart = tab.page.get_by_role('img', name='CPU time of ' + FIRST)
        chart.wait_for()
        before = chart.get_attribute('aria-label')
        self.service.hosts[0].alive(time.time())
        self.chromium.expect(chart).not_to_have_attribute('aria-label', before)
        self.check(tab)

    def test_measure_now_shows_its_progress(self):
        tab = self.tab('/hosts/%s?tab=error' % FIRST)
        measure = self.button(tab, 'Measure now, quickly')
        measure.click()
        self.see(tab, '5 of 12 points')
        tab.page.get_by_role('progressbar').wait_for()
        self.chromium.expect(measure).to_be_disabled()
        self.check(tab)
        self.button(tab, 'Cancel').click()
        self.chromium.expect(
            tab.page.get_by_role('progressbar')
        ).to_have_count(0)
        self.chromium.expect(measure).to_be_enabled()
        self.go(tab, '/jobs')
        self.see(tab, 'cancelled')
        self.check(tab)

    def test_what_if_names_the_reason_of_each_host(self):
        tab = self.tab('/whatif')
        tab.page.get_by_label('Share of a CPU for each vCPU (%)').fill('100')
        tab.page.get_by_label('vCPUs', exact=True).fill('14')
        self.button(tab, 'Evaluate').click()
        reason = tab.page.locator('.vs-reasons').first
        reason.wait_for()
        self.assertIn('capacity', reason.inner_text())
        self.check(tab)

    def test_what_if_names_where_instances_go(self):
        tab = self.tab('/whatif')
        self.button(tab, 'Evaluate').click()
        tab.page.get_by_role(
            'heading', name=re.compile(r'They would go to .* \(1 instance\)')
        ).wait_for()
        self.check(tab)

    def test_order_a_balloon(self):
        tab = self.tab('/balloons')
        tab.page.get_by_role('button', name='Freeze').first.click()
        self.see(tab, 'frozen: pending')
        self.button(tab, 'Leave to the agent').click()
        tab.page.get_by_text('frozen: pending').wait_for(state='hidden')
        self.check(tab)

    def test_without_the_api(self):
        tab = self.tab('/hosts')
        self.see(tab, FIRST)
        self.service.door.shut()
        try:
            self.banner(tab).wait_for()
            # What was read before is still there.
            self.see(tab, FIRST)
            self.assertEqual([], tab.axe())
        finally:
            self.service.door.open()
        self.banner(tab).wait_for(state='hidden')
        self.service.patch(CHANGED, runtime_us=1_460)
        self.go(tab, '/instances/' + CHANGED)
        self.see(tab, '7.30 %', exact=False)

    def test_without_the_api_at_first(self):
        tab = self.tab('/events')
        session = re.compile('/ui/session$')
        tab.page.route(session, lambda route: route.abort())
        self.go(tab, '/hosts')
        self.banner(tab).wait_for()
        self.assertEqual([], tab.axe())
        # It has been asked for again, and the banner has stayed.
        with tab.page.expect_event(
            'requestfailed', lambda request: session.search(request.url)
        ):
            pass
        self.chromium.expect(self.banner(tab)).to_have_count(1)
        self.chromium.expect(self.button(tab, 'Try again')).to_have_count(0)
        tab.page.unroute(session)
        self.see(tab, FIRST)
        self.chromium.expect(self.banner(tab)).to_have_count(0)
