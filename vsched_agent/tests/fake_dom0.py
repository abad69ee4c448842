# SPDX-License-Identifier: Apache-2.0

"""The first domain of a Xen host that runs what a test says.

Files have the form that Linux 6.1 gives them in the first domain of Xen 4.17.
"""

import os
import pathlib

import fixtures

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_agent.tests import fake_proc

#: The parent of the kernel's threads.
KTHREADD = 2

_NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    \
packets errs drop fifo colls carrier compressed
    lo:    5088      42    0    0    0     0          0         0     5088    \
  42    0    0    0     0       0          0
xenbr0:  104238    1206    0    0    0     0          0         0      866    \
  11    0    0    0     0       0          0
"""
_VIF = 'vif%d.0: %7d %7d    0    0    0     0          0         0 %8d %7d'
_REST = '    0    0    0     0       0          0\n'


class FakeDom0(fixtures.Fixture, base.DomainTimes):
    """Procfs and sysfs of the first domain, and what Xen counts.

    :param cpus: of the host.
    """

    def __init__(self, cpus: int = 4) -> None:
        super().__init__()
        self.cpus = cpus
        self.first_domain_ns = 0
        self.times_ns: dict[str, list[int]] = {}
        self.packets: dict[int, tuple[int, int]] = {}
        self.answers = True

    def _setUp(self) -> None:
        self.threads = self.useFixture(fake_proc.FakeProc())
        self.proc = str(self.threads.path)
        self.sys = self.useFixture(fixtures.TempDir()).path
        self.devices = pathlib.Path(self.sys, 'bus/xen-backend/devices')
        self.devices.mkdir(parents=True)
        pathlib.Path(self.proc, 'net').mkdir()
        self.write_packets()
        self.write_user_ticks(0)

    # What Xen counts

    def vcpu_times_ns(self, uuid: str) -> tuple[int, ...] | None:
        self._check()
        found = self.times_ns.get(uuid)
        return None if found is None else tuple(found)

    def host_time(self) -> base.HostTime:
        self._check()
        return base.HostTime(self.cpus, self.first_domain_ns)

    def _check(self) -> None:
        if not self.answers:
            raise base.HypervisorUnavailable('no answer')

    # What the first domain has

    def thread(
        self,
        tid: int,
        comm: str,
        run_ns: int = 0,
        *,
        start_ticks: int = 0,
        parent: int = KTHREADD,
    ) -> None:
        self.threads.set(
            tid, tid, run_ns, start_ticks=start_ticks, comm=comm, parent=parent
        )

    def write_packets(self) -> None:
        text = _NET_DEV + ''.join(
            _VIF % (domid, 60 * rx, rx, 60 * tx, tx) + _REST
            for domid, (rx, tx) in self.packets.items()
        )
        pathlib.Path(self.proc, 'net/dev').write_text(text)

    def write_user_ticks(self, ticks: int) -> None:
        pathlib.Path(self.proc, 'stat').write_text(
            'cpu  %d 0 5021 86321 433 0 77 1240 0 0\n'
            'cpu0 %d 0 5021 86321 433 0 77 1240 0 0\n' % (ticks, ticks)
        )

    def disk(
        self, domid: int, reads: int, writes: int, number: int = 51712
    ) -> None:
        folder = self.devices / ('vbd-%d-%d' % (domid, number)) / 'statistics'
        folder.mkdir(parents=True, exist_ok=True)
        for name, count in (
            ('ds_req', 0),
            ('f_req', 1),
            ('oo_req', 0),
            ('rd_req', reads),
            ('rd_sect', 8 * reads),
            ('wr_req', writes),
            ('wr_sect', 8 * writes),
        ):
            (folder / name).write_text('%d\n' % count)

    def interface(self, domid: int) -> None:
        os.mkdir(self.devices / ('vif-%d-0' % domid))


def domain(uuid: str, domid: int, vcpus: int = 1) -> base.Domain:
    """Return an instance with an interface and a disk."""
    return base.Domain(
        uuid,
        'name of ' + uuid,
        vcpu_ids.encode(domid),
        tuple(
            base.Vcpu(index, vcpu_ids.encode(domid, index))
            for index in range(vcpus)
        ),
        interfaces=(base.Interface('vif%d.0' % domid),),
        disks=('xvda',),
    )
