# SPDX-License-Identifier: Apache-2.0

"""What an audit prints of what hosts report."""

import contextlib
import io
from unittest import mock

from vsched_api.cmd import audit
from vsched_api.cmd import manage
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.openstack import placement


class TestOutput(base.TestCase):
    """One line for each difference, whatever its text is."""

    def test_a_host_forges_no_line(self):
        (one,) = base.uuids(1)
        self.agent().first(
            one,
            reservations=(
                base.reservation(
                    one,
                    state='refused',
                    enforced_backend=None,
                    enforced_runtime_us=None,
                    detail='none\nnode2: leftover: x\t\x9b31m\u2028\u202ey',
                ),
            ),
        )
        options = databases.write(
            self,
            '[database]\nconnection = %s\n[api]\nhost_down_after_s = 1e12\n'
            % self.conf.database.connection,
        )
        claims = mock.create_autospec(placement.Placement, instance=True)
        claims.claims.return_value = {}
        out = io.StringIO()
        with (
            mock.patch.object(
                audit, 'client', autospec=True, return_value=claims
            ),
            contextlib.redirect_stdout(out),
        ):
            self.assertEqual(
                1, manage.main(['--config-file', options, 'audit'])
            )
        lines = out.getvalue().splitlines()
        self.assertEqual(
            [], [one for one in lines if not one.startswith(base.HOST + ': ')]
        )
        self.assertTrue(all(one.isprintable() for one in lines), lines)
        self.assertIn('none\\nnode2: leftover: x', out.getvalue())
