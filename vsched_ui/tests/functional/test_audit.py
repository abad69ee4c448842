# SPDX-License-Identifier: Apache-2.0

"""The audit on the view of a host, with a real placement."""

from oslo_config import cfg

from keystoneauth1 import loading

from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement
from vsched_lib.tests import openstack_services
from vsched_ui.tests import fleet
from vsched_ui.tests import page_case

HOST = fleet.host_name(2)
_MCPU = 100_000


class TestAudit(page_case.PageCase):
    """*Compare now*, which reads placement, database and kernel."""

    hosts = 2
    conf: cfg.ConfigOpts

    @classmethod
    def configuration(cls):
        cls.conf = super().configuration()
        return cls.conf

    def open(self):
        tab = self.chromium.tab()
        self.addCleanup(tab.close)
        # What is on its way stays so for as long as a test needs.
        tab.stop_polls()
        self.go(tab, '/hosts/%s?tab=doctor' % HOST)
        self.see(tab, 'Not compared yet.')
        return tab

    def compare(self, tab):
        self.button(tab, 'Compare now').click()

    def reservations(self):
        """Return the reserved bandwidth in milli-CPU, by instance."""
        found = self.request('GET', '/v1/reservations?host=' + HOST).json()
        return {
            one['instance_uuid']: one['bandwidth_mcpu']
            for one in found['reservations']
        }

    def use_placement(self):
        """Let the service audit with a placement that knows the host."""
        service = openstack_services.shared_placement(self)
        self.conf.register_opts(
            loading.get_auth_plugin_conf_options('admin_token'),
            group='placement',
        )
        for name, value in service.options.items():
            self.conf.set_override(name, value, 'placement')
            self.addCleanup(self.conf.clear_override, name, 'placement')
        info = self.request('GET', '/v1/hosts/' + HOST).json()['host']
        provider = info['placement']['provider_uuid']
        client = service.client()
        if client.provider(HOST + ':vsched') is None:
            service.adapter().post(
                '/resource_providers',
                json={'uuid': provider, 'name': HOST + ':vsched'},
            )
            client.ensure_class(names.RESOURCE_CLASS)
            client.set_inventories(
                provider,
                0,
                {
                    names.RESOURCE_CLASS: placement.Inventory(
                        _MCPU, max_unit=_MCPU
                    )
                },
            )
        return service, provider

    def test_what_differs_and_then_agrees(self):
        service, provider = self.use_placement()
        reserved = self.reservations()
        tab = self.open()
        held = []
        tab.page.route('**/audit', lambda route: held.append(route))
        with tab.page.expect_request('**/audit'):
            self.compare(tab)
        # It is on its way, and cannot be requested twice.
        self.see(tab, 'Comparing …')
        self.chromium.expect(self.button(tab, 'Compare now')).to_be_disabled()
        self.assertEqual([], tab.axe())
        held[0].continue_()
        tab.page.unroute('**/audit')
        self.see(tab, '%d differences' % len(reserved))
        rows = tab.page.get_by_role('region', name='Differences').locator(
            'tbody tr'
        )
        self.chromium.expect(rows).to_have_count(len(reserved))
        self.chromium.expect(rows.first).to_contain_text('claim_differs')
        self.check(tab)
        for uuid, mcpu in reserved.items():
            service.claim(uuid, provider, **{names.RESOURCE_CLASS: mcpu})
        self.compare(tab)
        self.see(tab, 'Placement, database and kernel agree.', exact=False)
        self.chromium.expect(rows).to_have_count(0)
        self.check(tab)

    def test_without_placement(self):
        tab = self.open()
        self.compare(tab)
        problem = tab.page.get_by_role('alert').filter(
            has_text='vsched.placement.unavailable'
        )
        problem.wait_for()
        self.see(tab, 'It could not be compared.')
        self.assertEqual([], tab.axe())
        # The button tries again.
        self.use_placement()
        self.compare(tab)
        self.chromium.expect(problem).to_have_count(0)
        tab.page.get_by_text('agree.').or_(
            tab.page.get_by_text('differences')
        ).first.wait_for()
