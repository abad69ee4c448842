# SPDX-License-Identifier: Apache-2.0

"""What no verdict of an agent could make right."""

from oslotest import base

from vsched_api.operations import errors
from vsched_api.operations import expressibility
from vsched_api.tests import base as api_base
from vsched_lib.contract import messages
from vsched_lib.model import reservation as model


class TestCheck(base.BaseTestCase):
    """Every kind of host."""

    def check(
        self, runtime_us, period_us, backend=None, info=None, mode='capped'
    ):
        expressibility.check(
            model.Reservation(runtime_us, period_us, mode, backend),
            'node1',
            info,
        )

    def test_one_backend_that_can_is_enough(self):
        info = api_base.host_info()
        # cfs can not express it, deadline can, and the other way round.
        self.check(500, 900, info=info)
        self.check(5, 1_000_000)
        self.assertRaises(errors.Invalid, self.check, 5, 1_000_000, info=info)
        self.check(1_000, 1_000_000, info=info)

    def test_a_long_tick_makes_debts(self):
        self.check(100, 1_000_000, 'deadline')
        self.assertRaises(
            errors.Invalid,
            self.check,
            100,
            1_000_000,
            'deadline',
            api_base.host_info(tick_us=4000),
        )

    def test_a_host_without_any_backend_is_its_agents_concern(self):
        self.check(5_000, 20_000, info=api_base.host_info(backends=()))
        self.check(
            5_000, 20_000, 'deadline', info=api_base.host_info(backends=())
        )
        self.check(
            5_000,
            20_000,
            info=api_base.host_info(
                backends=(messages.BackendInfo('deadline', False),)
            ),
        )

    def test_a_backend_of_xen(self):
        xen = api_base.host_info(
            backends=(messages.BackendInfo('credit2', True),)
        )
        self.check(5_000, 20_000, 'credit2', xen)
        self.check(5_000, 20_000, 'credit2')
        self.assertRaises(errors.Invalid, self.check, 50, 99, 'credit2', xen)
        self.assertRaises(
            errors.Conflict, self.check, 5_000, 20_000, 'cfs', xen
        )
