# SPDX-License-Identifier: Apache-2.0

"""Every entrypoint of every helper: which threads does it act on?"""

import importlib
import os
import pkgutil

import ddt
from oslo_privsep import priv_context
from oslotest import base

from vsched_agent import privileged
from vsched_agent.privileged import ownership

_TID = 8
_REQUEST = (_TID, 1_000_000, 20_000_000, 0)

#: Those that are given threads or processes, with arguments that name one.
_GIVEN_THREADS = {
    'budget_expiry.budgets.reclaim': ([_REQUEST],),
    'budget_expiry.budgets.watch': ([_REQUEST], 500),
    'cgroup.make_probe_group': (
        '/sys/fs/cgroup/vsched-probe-%d-0' % os.getpid(),
        _TID,
    ),
    'clocks.open_clocks': ([_TID],),
    'budget_expiry.lending.lend': ([_TID], b'\0vsched-test-nobody'),
    'network.make_network': (os.getpid(), _TID),
    'sched.leave_deadline': ([(_TID, 0, 0, 0, 0)],),
    'sched.set_affinity': ([(_TID, [0])],),
    'sched.set_deadline': ([_REQUEST],),
    'switches.open_switches': ([_TID],),
    'preemption.begin': ([_TID], 500, 1.0),
}
#: Those that act on what one of the above admitted, and on nothing else.
_GIVEN_ADMITTED = {
    'budget_expiry.budgets.forget',
    'budget_expiry.budgets.stop_reclaiming',
    'clocks.read_clocks',
    'clocks.close_clocks',
    'switches.read_switches',
    'switches.close_switches',
}
#: Those that are not given threads. What ``cgroup.write`` and those of
#: ``partitions`` check, the threads of a group, is tested where it is.
_GIVEN_NONE = {
    'budget_expiry.budgets.borrow',
    'budget_expiry.budgets.renew',
    'budget_expiry.budgets.report',
    'budget_expiry.budgets.stop',
    'cgroup.remove_probe_group',
    'cgroup.remove_stale_probe_groups',
    'cgroup.write',
    'cgroup_partitions.rebuild_root_domains',
    'network.remove_network',
    'network.remove_stale_networks',
    'partitions.dissolve',
    'partitions.isolate',
    'sched.probe_free_bandwidth',
    'sched.try_deadline',
    'preemption.end',
    'preemption.ready',
    # Xen's vCPUs are no threads; which it may change is tested where it is.
    'xen.credit_parameters',
    'xen.info',
    'xen.rtds_parameters',
    'xen.set_credit',
    'xen.set_rtds',
}


class _Asked(Exception):
    """The entrypoint asked whose threads these are."""


def _entrypoints():
    """Find them by module and name, each with its context."""
    found = {}
    prefix = privileged.__name__ + '.'
    for one in pkgutil.walk_packages(privileged.__path__, prefix):
        module = importlib.import_module(one.name)
        for name, value in vars(module).items():
            helper = getattr(value, priv_context._ENTRYPOINT_ATTR, None)
            if helper is not None and (
                value.args[0].__module__ == module.__name__
            ):
                path = '%s.%s' % (one.name.removeprefix(prefix), name)
                found[path] = value, helper
    return found


#: Those for which QEMU's processes would be too many.
_GIVEN_CHILDREN = ('cgroup.make_probe_group', 'network.make_network')


@ddt.ddt
class TestEntrypoints(base.BaseTestCase):
    def test_none_is_forgotten(self):
        """Add a new one to the table that it belongs to, here."""
        self.assertEqual(
            {*_GIVEN_THREADS, *_GIVEN_ADMITTED, *_GIVEN_NONE},
            set(_entrypoints()),
        )

    @ddt.data(*sorted(_GIVEN_THREADS))
    def test_they_ask_before_they_act(self, name):
        def refusals(tids):
            raise _Asked(list(tids))

        self.patch(ownership, 'refusals', refusals)
        self.patch(ownership, 'child_refusals', refusals)
        function, helper = _entrypoints()[name]
        self.patch(helper, 'client_mode', False)
        asked = self.assertRaises(_Asked, function, *_GIVEN_THREADS[name])
        self.assertEqual([_TID], asked.args[0])

    @ddt.data(*_GIVEN_CHILDREN)
    def test_emulators_are_not_moved(self, name):
        """What admits QEMU's processes as well is not asked."""
        self.patch(ownership, 'refusals', lambda tids: {})
        self.patch(
            ownership, 'child_refusals', lambda pids: {_TID: 'an emulator'}
        )
        function, helper = _entrypoints()[name]
        self.patch(helper, 'client_mode', False)
        refusal = self.assertRaises(
            PermissionError, function, *_GIVEN_THREADS[name]
        )
        self.assertEqual('an emulator', str(refusal))

    @ddt.data(*sorted(_GIVEN_ADMITTED))
    def test_what_was_not_admitted_is_not_found(self, name):
        function, helper = _entrypoints()[name]
        self.patch(helper, 'client_mode', False)
        try:
            self.assertFalse(any(function([_TID]) or ()))
        except KeyError as missing:
            self.assertEqual(_TID, missing.args[0])
