# SPDX-License-Identifier: Apache-2.0

"""What the doctor of an agent found, on the view of its host."""

from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_ui.tests import fleet
from vsched_ui.tests import host_reports
from vsched_ui.tests import page_case


class TestFindings(page_case.PageCase):
    """A host with findings, one without, and one that does not report them.

    A fourth one has what each test makes it report.
    """

    hosts = 4

    def open(self, number):
        """Open the tab of a host; return it and its section of findings."""
        tab = self.tab('/hosts/%s?tab=doctor' % fleet.host_name(number))
        self.see_heading(tab, 'Findings')
        section = tab.page.locator('section').filter(
            has=tab.page.get_by_role('heading', name='Findings', exact=True)
        )
        return tab, section

    def test_problems_come_first_with_their_remedies(self):
        tab, section = self.open(1)
        rows = section.locator('tbody tr')
        self.chromium.expect(rows).to_have_count(len(host_reports.FINDINGS))
        self.chromium.expect(rows.first).to_contain_text('problem')
        for finding in host_reports.FINDINGS:
            row = rows.filter(has_text=finding.text)
            self.chromium.expect(row).to_have_count(1)
            for text in (finding.level, finding.subject, finding.remedy):
                self.chromium.expect(row).to_contain_text(text)
        self.check(tab)
        tab.page.get_by_label('Level of Findings').select_option('note')
        self.chromium.expect(rows).to_have_count(
            sum(one.level == 'note' for one in host_reports.FINDINGS)
        )
        self.chromium.expect(rows.filter(has_text='problem')).to_have_count(0)

    def test_no_findings(self):
        tab, section = self.open(2)
        section.get_by_role('heading', name='No findings').wait_for()
        self.chromium.expect(section.locator('tbody')).to_have_count(0)
        self.check(tab)

    def test_a_backend_that_cannot_be_used_is_there_once(self):
        reason = 'the kernel has no deadline scheduler'
        unusable = messages.HostFinding(
            'problem', 'deadline', 'this host cannot use it: ' + reason
        )
        host = self.service.hosts[3]
        for others in (host_reports.FINDINGS, ()):
            host.send(
                host_info=base.host_info(
                    backends=(
                        messages.BackendInfo('deadline', False, (reason,)),
                        messages.BackendInfo('cfs', True),
                    ),
                    findings=(unusable, *others),
                )
            )
            tab, section = self.open(4)
            self.see(tab, 'cannot be used.', exact=False)
            self.chromium.expect(
                tab.page.get_by_text(reason).filter(visible=True)
            ).to_have_count(1)
            if others:
                self.chromium.expect(
                    section.locator('tbody tr')
                ).to_have_count(len(others))
            else:
                section.get_by_role('heading', name='No findings').wait_for()
            self.check(tab)

    def test_an_agent_that_does_not_report_them(self):
        tab, section = self.open(3)
        section.get_by_role(
            'heading', name='Findings are not reported'
        ).wait_for()
        self.chromium.expect(section.locator('tbody')).to_have_count(0)
        self.check(tab)
