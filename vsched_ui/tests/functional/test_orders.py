# SPDX-License-Identifier: Apache-2.0

"""What operators order on the page, and what the agent reports of it."""

import time

import ddt

from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.tests import balloon_reports
from vsched_lib.tests import overhead_profiles
from vsched_ui.tests import fleet
from vsched_ui.tests import measurements
from vsched_ui.tests import page_case

HOST = fleet.host_name(1)
BALLOONED = fleet.instance_uuid(1, 1)


class TestBalloons(page_case.PageCase):
    """Orders with a number of vCPUs."""

    hosts = 1

    def report(self, **changes):
        """Report how the instance stands, as the agent does."""
        self.service.hosts[0].send(
            balloons=(
                balloon_reports.report(
                    BALLOONED,
                    **{
                        'vcpus': 2,
                        'online_vcpus': 2,
                        'since': time.time(),
                        **changes,
                    },
                ),
            )
        )

    def answer(self, online_vcpus, state):
        """Report what became of the order."""
        found = self.request('GET', '/v1/balloons/' + BALLOONED).json()
        self.report(
            online_vcpus=online_vcpus,
            state=balloons.BalloonState.MANUAL,
            generation=found['balloon']['order']['generation'],
            order_state=state,
        )

    def leave(self):
        """Report that there is no order any more."""
        self.report(state=balloons.BalloonState.FULL)

    def test_order_a_number_of_vcpus(self):
        tab = self.tab('/instances/' + BALLOONED)
        section = tab.page.get_by_role('region', name='Balloon', exact=True)
        order = section.get_by_role('button', name='Order', exact=True)
        order.wait_for()
        # There is no number yet.
        self.chromium.expect(order).to_be_disabled()
        number = section.get_by_label('vCPUs for ')
        self.assertEqual(
            ['vCPUs …', '1', '2'], number.locator('option').all_inner_texts()
        )
        number.select_option('1')
        self.check(tab)
        self.assertEqual(
            (
                '/v1/balloons',
                {
                    'instance_uuid': BALLOONED,
                    'generation': 0,
                    'target_vcpus': 1,
                },
            ),
            self.sent(tab, 'POST', order.click),
        )
        self.see(tab, '1 vCPUs: pending')
        self.answer(1, balloons.OrderState.APPLIED)
        self.see(tab, '1 vCPUs: applied')
        self.see(tab, '1 of 2')
        self.chromium.expect(section).to_contain_text('At least1 vCPU')
        self.see(tab, 'manual')
        # An order that there is gets changed.
        number.select_option('2')
        path, body = self.sent(tab, 'PATCH', order.click)
        self.assertEqual('/v1/balloons/' + BALLOONED, path)
        self.assertEqual(2, body['target_vcpus'])
        self.see(tab, '2 vCPUs: pending')
        self.answer(2, balloons.OrderState.APPLIED)
        self.see(tab, '2 vCPUs: applied')
        self.see(tab, '2 of 2')
        self.check(tab)
        everything = self.tab('/balloons')
        self.see(everything, '2 vCPUs: applied')
        self.check(everything)
        section.get_by_role('button', name='Leave to the agent').click()
        # It is pending until the agent has got that, too.
        self.see(tab, 'nothing: pending')
        self.leave()
        self.chromium.expect(section).to_contain_text('Ordernone')
        everything.page.get_by_text('2 vCPUs: applied').wait_for(
            state='hidden'
        )

    def test_an_order_that_was_withdrawn_before(self):
        self.request(
            'POST',
            '/v1/balloons',
            json={'instance_uuid': BALLOONED, 'target_vcpus': 1},
        ).raise_for_status()
        self.answer(1, balloons.OrderState.APPLIED)
        tab = self.tab('/instances/' + BALLOONED)
        section = tab.page.get_by_role('region', name='Balloon', exact=True)
        section.get_by_text('1 vCPUs: applied').wait_for()
        self.request('DELETE', '/v1/balloons/' + BALLOONED).raise_for_status()
        section.get_by_text('nothing: pending').wait_for()
        section.get_by_role('button', name='Leave to the agent').click()
        # As was intended, though another user has done it.
        section.get_by_role('status').filter(
            has_text='There is no order any more.'
        ).wait_for()
        self.assertEqual(0, section.get_by_role('alert').count())
        self.assertEqual([], tab.axe())
        self.leave()
        self.chromium.expect(section).to_contain_text('Ordernone')
        self.assertEqual([], page_case.other_errors(tab))

    def test_an_order_that_was_withdrawn_since_it_was_read(self):
        self.request(
            'POST',
            '/v1/balloons',
            json={'instance_uuid': BALLOONED, 'target_vcpus': 1},
        ).raise_for_status()
        self.answer(1, balloons.OrderState.APPLIED)
        tab = self.chromium.tab()
        self.addCleanup(tab.close)
        tab.stop_polls()
        self.go(tab, '/instances/' + BALLOONED)
        section = tab.page.get_by_role('region', name='Balloon', exact=True)
        section.get_by_text('1 vCPUs: applied').wait_for()
        self.request('DELETE', '/v1/balloons/' + BALLOONED).raise_for_status()
        # It is based on the order that is shown still.
        with tab.page.expect_response(
            lambda answer: answer.request.method == 'DELETE'
        ) as found:
            section.get_by_role('button', name='Leave to the agent').click()
        self.assertEqual(409, found.value.status)
        section.get_by_role('status').filter(
            has_text='There is no order any more.'
        ).wait_for()
        section.get_by_text('nothing: pending').wait_for()
        self.assertEqual(0, section.get_by_role('alert').count())
        self.leave()
        self.assertEqual([], page_case.other_errors(tab))


class JobsCase(page_case.PageCase):
    """Jobs of one host."""

    hosts = 1

    def report(self, state, progress_ppm, detail, **parts):
        """Report on the job that runs, as the agent does."""
        (job,) = self.request('GET', '/v1/jobs?state=running').json()['jobs']
        self.service.hosts[0].send(
            jobs=(
                messages.JobReport(
                    job['uuid'],
                    job['attempt'],
                    state,
                    progress_ppm,
                    time.time(),
                    detail,
                ),
            ),
            **parts,
        )


@ddt.ddt
class TestMeasureOverhead(JobsCase):
    """*Measure now* on the tab of the overhead."""

    @ddt.data(
        ('Measure now, quickly', {'quick': True}, 1, 11_000.0, '11 µs'),
        ('Measure thoroughly', {}, 2, 13_000.0, '13 µs'),
    )
    @ddt.unpack
    def test_until_its_prices_are_shown(
        self, button, body, number, cost_ns, cost
    ):
        tab = self.tab('/hosts/%s?tab=overhead' % HOST)
        prices = tab.page.get_by_role('grid', name='Prices of I/O')
        prices.wait_for()
        measure = self.button(tab, button)
        self.assertEqual(
            ('/v1/hosts/%s/profiles/overhead' % HOST, body),
            self.sent(tab, 'POST', measure.click),
        )
        self.see(tab, '5 of 12 points')
        tab.page.get_by_role('progressbar').wait_for()
        self.chromium.expect(measure).to_be_disabled()
        self.check(tab)
        now = time.time()
        self.report(
            messages.JobState.DONE,
            1_000_000,
            'overhead profile',
            overhead_profiles=(
                overhead_profiles.profile(
                    {**overhead_profiles.PRICES, 'net_tx': cost_ns},
                    uuid=fleet.instance_uuid(0, number),
                    version=number + 10,
                    started_at=now - 60,
                    finished_at=now,
                    kernel=measurements.KERNEL,
                    cpus=measurements.CPUS,
                ),
            ),
        )
        self.chromium.expect(
            tab.page.get_by_role('progressbar')
        ).to_have_count(0)
        self.chromium.expect(measure).to_be_enabled()
        self.chromium.expect(prices).to_contain_text(cost)
        self.check(tab)


@ddt.ddt
class TestResume(JobsCase):
    """Jobs that came to an early end."""

    def cancel(self, row):
        row.get_by_role('button', name='Cancel').click()
        return 'cancelled'

    def fail_it(self, row):
        self.report(messages.JobState.FAILED, 420_000, 'the guest is gone')
        self.chromium.expect(row).to_contain_text('the guest is gone')
        return 'failed'

    @ddt.data('cancel', 'fail_it')
    def test_a_job_is_resumed(self, end):
        self.service.measure(HOST)
        tab = self.tab('/jobs')
        row = tab.page.locator('tbody tr').first
        expect = self.chromium.expect
        expect(row).to_contain_text('5 of 12 points')
        attempt = row.locator('td[data-label=Attempt]')
        expect(attempt).to_have_text('1')
        state = row.locator('td[data-label=State]')
        expect(state).to_have_text('running')
        ended = getattr(self, end)(row)
        expect(state).to_have_text(ended)
        self.check(tab)
        path, body = self.sent(
            tab, 'PATCH', row.get_by_role('button', name='Resume').click
        )
        self.assertEqual({'wanted': 'run'}, body)
        self.assertTrue(path.startswith('/v1/jobs/'), path)
        expect(state).to_have_text('running')
        expect(attempt).to_have_text('2')
        expect(row).to_contain_text('5 of 12 points')
        self.check(tab)
        # Another of its kind is refused while it runs.
        row.get_by_role('button', name='Cancel').click()
        expect(state).to_have_text('cancelled')
