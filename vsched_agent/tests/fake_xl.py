# SPDX-License-Identifier: Apache-2.0

"""Xen's toolstack, as far as the helper ``xen`` starts it.

It takes the helper's command lines and prints what ``xl`` of Xen 4.17 does.
"""

import fixtures

from vsched_agent.privileged import xen
from vsched_agent.tests import in_process

_INFO = """\
host                   : xen1
release                : 6.1.0-41-amd64
nr_cpus                : %(cpus)d
xen_major              : 4
xen_version            : 4.17.5
xen_caps               : xen-3.0-x86_64 hvm-3.0-x86_32
xen_scheduler          : %(scheduler)s
xen_commandline        : placeholder dom0_mem=1536M %(words)s
cc_compile_by          : root
"""
_TITLE = 'Name                                ID VCPU    Period    Budget  '
_DEFAULT = [10_000, 4_000, True]
_CREDIT_TITLE = 'Name                                ID Weight  Cap'
_CREDIT_POOLS = {
    'credit2': 'Cpupool Pool-%d: ratelimit=1000us',
    'credit': 'Cpupool Pool-%d: tslice=30ms ratelimit=1000us '
    'migration-delay=0us',
}
_CREDIT_DEFAULT = [256, 0]
#: What one command can set.
_MAX_VCPUS = 6


class FakeXl(fixtures.Fixture):
    """A hypervisor; the first domain has one vCPU.

    :ivar vcpus: parameters by domain and vCPU, of RTDS.
    :ivar domains: weight and cap by domain, of credit2 and credit.
    :ivar commands: the arguments of all that was started.
    :ivar problem: what fails, with the vCPU at which a command fails; of
        credit2 and credit, with the domain.
    """

    def __init__(self, cpus: int = 2, scheduler: str = 'rtds') -> None:
        super().__init__()
        self.cpus = cpus
        self.scheduler = scheduler
        self.words = 'sched=rtds'
        self.pools = 1
        self.vcpus: dict[tuple[int, int], list[int | bool]] = {
            (0, 0): list(_DEFAULT)
        }
        self.domains = {0: list(_CREDIT_DEFAULT)}
        self.names = {0: 'Domain-0'}
        self.commands: list[tuple[str, ...]] = []
        self.problem: tuple[str, int] | None = None
        self.unavailable = ''

    def _setUp(self) -> None:
        manager = in_process.entrypoints(xen.xen_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.useFixture(fixtures.MockPatchObject(xen, '_run', self.run))

    def start(self, domid: int, vcpus: int = 1, name: str = '') -> None:
        """Start a domain."""
        self.names[domid] = name or 'instance-%d' % domid
        self.domains[domid] = list(_CREDIT_DEFAULT)
        for index in range(vcpus):
            self.vcpus[domid, index] = list(_DEFAULT)

    def end(self, domid: int) -> None:
        """End a domain."""
        del self.domains[domid]
        for key in [one for one in self.vcpus if one[0] == domid]:
            del self.vcpus[key]

    def run(self, *arguments: str) -> str:
        """Run a command line."""
        self.commands.append(arguments)
        if self.unavailable:
            raise xen.ToolstackError(self.unavailable)
        if arguments == ('info',):
            return _INFO % vars(self)
        if arguments == ('sched-rtds', '-v', 'all'):
            return self._list()
        if arguments[0].startswith('sched-credit'):
            return self._credit(arguments[0][len('sched-') :], arguments[1:])
        assert arguments[:2] == ('sched-rtds', '-d'), arguments
        return self._set(int(arguments[2]), arguments[3:])

    def _list(self) -> str:
        if self.scheduler != 'rtds':
            return ''
        lines = [
            'Cpupool Pool-%d: sched=RTDS' % number
            for number in range(self.pools)
        ]
        lines.append(_TITLE + 'Extratime')
        lines += [
            '%-33s %4d %4d %9d %9d %10s'
            % (
                self.names[domid],
                domid,
                index,
                period_us,
                budget_us,
                'yes' if extratime else 'no',
            )
            for (domid, index), (period_us, budget_us, extratime) in sorted(
                self.vcpus.items()
            )
        ]
        return '\n'.join(lines) + '\n'

    def _credit(self, name: str, words: tuple[str, ...]) -> str:
        if not words:
            return self._list_domains(name)
        assert words[::2] == ('-d', '-w', '-c'), words
        domid, weight, cap = map(int, words[1::2])
        if domid not in self.domains:
            raise xen.ToolstackError('%d is an invalid domain' % domid)
        if self.scheduler != name or (
            self.problem and self.problem[1] == domid
        ):
            raise xen.ToolstackError(
                self.problem[0] if self.problem else 'Invalid argument'
            )
        self.domains[domid] = [weight, cap]
        return ''

    def _list_domains(self, name: str) -> str:
        if self.scheduler != name:
            return ''
        lines = [_CREDIT_POOLS[name] % one for one in range(self.pools)]
        lines.append(_CREDIT_TITLE)
        lines += [
            '%-33s %4d %6d %4d' % (self.names[domid], domid, weight, cap)
            for domid, (weight, cap) in sorted(self.domains.items())
        ]
        return '\n'.join(lines) + '\n'

    def _set(self, domid: int, words: tuple[str, ...]) -> str:
        if (domid, 0) not in self.vcpus:
            raise xen.ToolstackError('%d is an invalid domain' % domid)
        if words.count('-v') > _MAX_VCPUS:
            # It corrupts its memory and is ended.
            raise xen.ToolstackError('xl sched-rtds: exit code -6')
        while words:
            options, words = words[:8], words[8:]
            assert options[::2] == ('-v', '-p', '-b', '-e'), options
            index, period_us, budget_us, extratime = map(int, options[1::2])
            if self.problem and self.problem[1] == index:
                raise xen.ToolstackError(self.problem[0])
            if (domid, index) not in self.vcpus:
                raise xen.ToolstackError('VCPU index is invalid')
            self.vcpus[domid, index] = [period_us, budget_us, bool(extratime)]
        return ''
