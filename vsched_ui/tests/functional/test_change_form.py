# SPDX-License-Identifier: Apache-2.0

"""The form that changes what is reserved, and the end of an override."""

import time

from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_ui.tests import fleet
from vsched_ui.tests import page_case

PLAIN = fleet.instance_uuid(1, 1)
REMOVED = fleet.instance_uuid(1, 1)
FULL = fleet.instance_uuid(1, 3)
FORMED = fleet.instance_uuid(1, 4)
CONTESTED = fleet.instance_uuid(1, 5)
TYPED = fleet.instance_uuid(1, 2)

#: Labels of all fields with choices, each with the value that is chosen.
CHOICES = {
    'Mode': 'capped',
    'Backend': 'deadline',
    'Charging of I/O': 'none',
    'Communication-aware': 'false',
    'Balloon': 'auto',
}
#: Likewise of all fields with numbers.
NUMBERS = {
    'Share of a CPU for each vCPU (%)': '33',
    'Period (ms)': '10',
    'Largest allocation error (%)': '100',
    'Ballooning leaves at least (vCPUs)': '2',
    'Weight': '250',
}
#: What those are to the API.
ALL = {
    'runtime_us': 3_300,
    'period_us': 10_000,
    'mode': 'capped',
    'backend': 'deadline',
    'io_charging': 'none',
    'comm_aware': False,
    'balloon': 'auto',
    'max_alloc_error_pct': 100,
    'min_vcpus': 2,
    'weight': 250,
}
#: The fields that may be left to the flavor.
OPTIONAL = ALL.keys() - {'runtime_us', 'period_us', 'mode'}


class TestReserve(page_case.PageCase):
    """An instance whose flavor reserves nothing."""

    hosts = 0

    @classmethod
    def populate(cls):
        cls.host = cls.add_host(
            1, messages.InstanceInfo(PLAIN, 'instance-00000001', 2)
        )

    def apply(self):
        """Report what is ordered as applied, as the agent does."""
        (one,) = self.service.collector.on_overrides(self.host.name).overrides
        self.host.send(
            reservations=(
                base.reservation(
                    PLAIN,
                    source=messages.Source.OVERRIDE,
                    generation=one.generation,
                    vcpus=2,
                    since=time.time(),
                    runtime_us=one.runtime_us,
                    period_us=one.period_us,
                    mode=one.mode,
                    enforced_runtime_us=one.runtime_us,
                    enforced_period_us=one.period_us,
                    attested_at=time.time(),
                ),
            )
        )

    def test_reserve_for_an_instance_without_a_reservation(self):
        tab = self.tab('/instances/' + PLAIN)
        self.see(tab, 'Nothing is reserved for this instance', exact=False)
        self.button(tab, 'Reserve CPU time').click()
        send = tab.page.get_by_role('button', name='Reserve', exact=True)
        # There is no share that it could be evaluated with.
        self.see(tab, 'more than 0 % and at most 100 %', exact=False)
        self.chromium.expect(send).to_be_disabled()
        share = tab.page.get_by_label('Share of a CPU for each vCPU (%)')
        self.assertEqual('', share.input_value())
        share.fill('35')
        self.see(tab, '7 ms every 20 ms', exact=False)
        self.see(tab, 'It fits on', exact=False)
        self.check(tab)
        self.assertEqual(
            (
                '/v1/reservations',
                {
                    'instance_uuid': PLAIN,
                    'runtime_us': 7_000,
                    'period_us': 20_000,
                    'mode': 'capped',
                },
            ),
            self.sent(tab, 'POST', send.click),
        )
        tab.page.get_by_role('dialog').wait_for(state='hidden')
        self.see(tab, '35.0 %', exact=False)
        # The agent has not got it yet.
        self.see(tab, 'pending')
        self.see(tab, 'nothing')
        self.apply()
        self.see(tab, 'applied')
        self.see(tab, 'by deadline')
        self.button(tab, 'Change reservation').wait_for()
        self.check(tab)


class TestForm(page_case.PageCase):
    """Changes of a reservation that its flavor has."""

    hosts = 1

    def open(self, uuid):
        """Open the form; return its tab, the form and what sends it."""
        tab = self.chromium.tab()
        self.addCleanup(tab.close)
        # A reservation that was read before a change may be answered after
        # it, and is what the form would be opened with until the next poll.
        tab.stop_polls()
        self.go(tab, '/instances/' + uuid)
        return tab, *self.form(tab)

    def form(self, tab):
        """Open the form on the view of an instance."""
        self.button(tab, 'Change reservation').click()
        form = tab.page.get_by_role('dialog')
        return form, form.get_by_role('button', name='Change', exact=True)

    def field(self, form, label):
        """Return the input with a label."""
        return form.get_by_label(label, exact=True)

    def fill(self, form, choices, numbers):
        """Fill in fields by their labels."""
        for label, value in choices.items():
            self.field(form, label).select_option(value)
        for label, value in numbers.items():
            self.field(form, label).fill(value)

    def reservation(self, uuid):
        """Return the reservation as the API has it."""
        found = self.request('GET', '/v1/reservations/' + uuid).json()
        return found['reservation']

    def test_each_field_is_evaluated_and_sent(self):
        tab, form, send = self.open(FULL)
        # It has all of them, with what each is for.
        for label in (*CHOICES, *NUMBERS):
            self.assertTrue(
                self.field(form, label).get_attribute('aria-describedby'),
                label,
            )
        with tab.page.expect_request(
            lambda request: (
                request.url.endswith('/v1/evaluations')
                and request.post_data_json['override'] == ALL
            )
        ):
            self.fill(form, CHOICES, NUMBERS)
        self.chromium.expect(send).to_be_enabled()
        self.check(tab)
        path, body = self.sent(tab, 'PATCH', send.click)
        self.assertEqual('/v1/reservations/' + FULL, path)
        # It was capped before.
        changed = {name: ALL[name] for name in ALL if name != 'mode'}
        self.assertEqual({**changed, 'generation': 0}, body)
        form.wait_for(state='hidden')
        found = self.reservation(FULL)
        self.assertEqual(ALL, {name: found[name] for name in ALL})
        # The form has what is desired now.
        form, send = self.form(tab)
        for label, value in (*CHOICES.items(), *NUMBERS.items()):
            self.chromium.expect(self.field(form, label)).to_have_value(value)
        self.chromium.expect(send).to_be_disabled()
        self.fill(
            form,
            dict.fromkeys(CHOICES.keys() - {'Mode'}, ''),
            dict.fromkeys(tuple(NUMBERS)[2:], ''),
        )
        self.chromium.expect(send).to_be_enabled()
        body = self.sent(tab, 'PATCH', send.click)[1]
        self.assertEqual(
            {**dict.fromkeys(OPTIONAL), 'generation': found['generation']},
            body,
        )
        form.wait_for(state='hidden')
        found = self.reservation(FULL)
        self.assertEqual(
            dict.fromkeys(OPTIONAL), {name: found[name] for name in OPTIONAL}
        )
        self.check(tab)

    def test_fields_that_are_wrong(self):
        tab, form, send = self.open(FORMED)
        for label, value, fault in (
            ('Largest allocation error (%)', '0', '0.1 to 100 %'),
            ('Ballooning leaves at least (vCPUs)', '3', '1 to 2 vCPUs'),
            ('Weight', '1.5', 'a whole number, 1 to 10000'),
        ):
            field = self.field(form, label)
            field.fill(value)
            form.get_by_text(fault, exact=False).wait_for()
            self.assertEqual('true', field.get_attribute('aria-invalid'))
            self.chromium.expect(send).to_be_disabled()
            self.check(tab)
            field.fill('')
        self.field(form, 'Balloon').select_option('off')
        self.chromium.expect(send).to_be_enabled()
        self.field(form, 'Ballooning leaves at least (vCPUs)').fill('1')
        form.get_by_text('empty while ballooning is off').wait_for()
        self.chromium.expect(send).to_be_disabled()
        self.field(form, 'Balloon').select_option('auto')
        self.chromium.expect(send).to_be_enabled()

    def test_an_override_that_was_removed_before(self):
        self.service.patch(REMOVED, runtime_us=3_000)
        tab = self.tab('/instances/' + REMOVED)
        self.button(tab, 'Remove override').click()
        dialog = tab.page.get_by_role('dialog')
        remove = dialog.get_by_role('button', name='Remove', exact=True)
        remove.wait_for()
        self.request(
            'DELETE', '/v1/reservations/' + REMOVED
        ).raise_for_status()
        # What it is about is below it.
        tab.page.get_by_text('its metadata', exact=True).wait_for()
        remove.click()
        dialog.get_by_role('status').filter(
            has_text='There is no override any more'
        ).wait_for()
        self.assertEqual(0, dialog.get_by_role('alert').count())
        self.chromium.expect(remove).to_have_count(0)
        self.assertEqual([], tab.axe())
        dialog.get_by_role('button', name='Close', exact=True).last.click()
        dialog.wait_for(state='hidden')
        self.chromium.expect(
            tab.page.get_by_role('button', name='Remove override')
        ).to_have_count(0)
        self.assertEqual([], page_case.other_errors(tab))

    def test_an_override_that_was_removed_since_it_was_read(self):
        self.service.patch(REMOVED, runtime_us=3_000)
        tab = self.chromium.tab()
        self.addCleanup(tab.close)
        tab.stop_polls()
        self.go(tab, '/instances/' + REMOVED)
        self.button(tab, 'Remove override').click()
        dialog = tab.page.get_by_role('dialog')
        remove = dialog.get_by_role('button', name='Remove', exact=True)
        remove.wait_for()
        self.request(
            'DELETE', '/v1/reservations/' + REMOVED
        ).raise_for_status()
        with tab.page.expect_response(
            lambda answer: answer.request.method == 'DELETE'
        ) as found:
            remove.click()
        # It is based on the override that was shown still.
        self.assertEqual(409, found.value.status)
        dialog.get_by_role('status').filter(
            has_text='There is no override any more'
        ).wait_for()
        self.assertEqual(0, dialog.get_by_role('alert').count())
        self.chromium.expect(remove).to_have_count(0)
        dialog.get_by_role('button', name='Close', exact=True).last.click()
        dialog.wait_for(state='hidden')
        self.assertEqual([], page_case.other_errors(tab))

    def test_the_form_evaluates_before_it_changes(self):
        tab = self.tab('/instances/' + FORMED)
        self.button(tab, 'Change reservation').click()
        send = tab.page.get_by_role('button', name='Change', exact=True)
        # Nothing differs yet.
        self.see(tab, 'It fits on', exact=False)
        self.chromium.expect(send).to_be_disabled()
        share = tab.page.get_by_label('Share of a CPU for each vCPU (%)')
        share.fill('101')
        self.see(tab, 'more than 0 % and at most 100 %', exact=False)
        self.chromium.expect(send).to_be_disabled()
        share.fill('33')
        self.see(tab, '6.6 ms every 20 ms', exact=False)
        self.see(tab, 'It fits on', exact=False)
        self.check(tab)
        self.assertEqual(
            (
                '/v1/reservations/' + FORMED,
                {'runtime_us': 6_600, 'generation': 0},
            ),
            self.sent(tab, 'PATCH', send.click),
        )
        tab.page.get_by_role('dialog').wait_for(state='hidden')
        self.see(tab, '33.0 %', exact=False)
        # A poll that was answered before the change may arrive after it, and
        # is shown until the next one.
        for _ in range(2):
            with tab.page.expect_response(
                lambda answer: '/v1/reservations?' in answer.url
            ):
                pass
        self.button(tab, 'Remove override').click()
        tab.page.get_by_role('button', name='Remove', exact=True).click()
        tab.page.get_by_role('dialog').wait_for(state='hidden')
        tab.page.get_by_role('button', name='Remove override').wait_for(
            state='hidden'
        )
        self.check(tab)

    def test_a_change_by_another_user_is_not_overwritten(self):
        tab = self.tab('/instances/' + CONTESTED)
        self.button(tab, 'Change reservation').click()
        share = tab.page.get_by_label('Share of a CPU for each vCPU (%)')
        share.wait_for()
        self.service.patch(CONTESTED, runtime_us=3_000)
        share.fill('12')
        send = tab.page.get_by_role('button', name='Change', exact=True)
        send.click()
        self.see(tab, 'Another user has changed it', exact=False)
        found = self.request('GET', '/v1/reservations/' + CONTESTED).json()
        self.assertEqual(3_000, found['reservation']['runtime_us'])
        self.see(tab, '15.0 %', exact=False)
        self.button(tab, 'Base this on the newest').click()
        send.click()
        tab.page.get_by_role('dialog').wait_for(state='hidden')
        self.see(tab, '12.0 %', exact=False)

    def test_what_was_typed_stays_when_others_change_something(self):
        tab = self.tab('/instances/' + TYPED)
        self.button(tab, 'Change reservation').click()
        dialog = tab.page.get_by_role('dialog')
        share = dialog.get_by_label('Share of a CPU for each vCPU (%)')
        weight = dialog.get_by_label('Weight')
        share.fill('12')
        self.service.patch(TYPED, weight=7)
        # A poll shows it; nothing was sent.
        note = dialog.get_by_role('alert').filter(has_text='Changed: Weight.')
        note.wait_for()
        self.assertEqual('12', share.input_value())
        self.assertNotEqual('7', weight.input_value())
        self.check(tab)
        self.button(tab, 'Base this on the newest').click()
        self.chromium.expect(note).to_have_count(0)
        self.assertEqual('12', share.input_value())
        self.assertEqual('7', weight.input_value())
        send = tab.page.get_by_role('button', name='Change', exact=True)
        _, body = self.sent(tab, 'PATCH', send.click)
        # What others have changed is not sent as it was before.
        self.assertEqual({'runtime_us', 'generation'}, set(body))
        dialog.wait_for(state='hidden')
        self.see(tab, '12.0 %', exact=False)
