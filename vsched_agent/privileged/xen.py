# SPDX-License-Identifier: Apache-2.0

"""Ask and instruct Xen by its toolstack, ``xl``: CAP_DAC_OVERRIDE.

libvirt cannot read or set the parameters of RTDS. The command lines below are
all that is started, without a shell: the file is constant, and the only
arguments from outside are whole numbers in bounds. CPU pools are not touched:
to destroy one that RTDS schedules panics the hypervisor (Xen 4.17).

Xen takes any sum of budgets, and any weights. :func:`set_rtds` and
:func:`set_credit` refuse a sum that exceeds the CPUs of the host, whatever
their caller has checked.

Access to ``/dev/xen/privcmd`` is access to the whole hypervisor, so ``xl``
itself is not confined by its capability; these bounds confine the agent.
"""

from collections.abc import Sequence
import ctypes
import errno
from fractions import Fraction
import math
import os
import re
import subprocess
import threading
import typing as ty

from oslo_privsep import capabilities

from vsched_agent.privileged import context
from vsched_agent.privileged import isolated

xen_pctxt = context.Context(
    'xen_pctxt',
    __name__,
    'vsched_xen_privileged',
    [capabilities.CAP_DAC_OVERRIDE],
)

#: Where distributions install the toolstack. The first is Debian's, for the
#: hypervisor that runs; its /usr/sbin/xl is a script of a shell.
XL = ('/usr/lib/xen-%s/bin/xl', '/usr/sbin/xl', '/usr/local/sbin/xl')
#: Longest run of a command, in seconds. It takes milliseconds; the toolstack
#: waits for a first domain that is starved.
TIMEOUT_S = 30.0
#: Longest output, in characters: 100 for each vCPU of a full host.
MAX_CHARS = 4 << 20
#: What of the output of ``xl info`` is returned.
INFO_KEYS = frozenset(
    ('nr_cpus', 'xen_version', 'xen_scheduler', 'xen_commandline')
)

#: Bounds of what is set. The first domain has the number 0. The toolstack
#: reads periods and budgets as integers of C.
MAX_DOMID, MAX_VCPUS = 0x7FEF, 512
LEAST_US, MOST_US = 10, 2**31 - 1
#: Of credit2 and credit. A cap is a percentage of one CPU, 0 for none.
MAX_WEIGHT, MAX_CAP = 65_535, 100 * MAX_VCPUS
#: How many vCPUs one command sets: xl of Xen 4.17 takes the length of its
#: arrays for their size in bytes, and corrupts its memory with seven.
COMMAND_VCPUS = 4

_INFO = re.compile(r'([a-z_]+) *: (.*)\Z')
_POOL = re.compile(r'Cpupool (.*): sched=RTDS\Z')
# The name comes first and may contain anything but the end of a line.
_VCPU = re.compile(
    r'.* ([0-9]{1,5}) +([0-9]{1,4}) +([0-9]{1,10}) +([0-9]{1,10}) +(yes|no)\Z',
    re.ASCII,
)
_TITLE = re.compile(r'Name +ID +VCPU +Period +Budget +Extratime\Z')
#: The schedulers with a weight and a cap of each domain.
_OF_DOMAINS = {
    'credit2': re.compile(r'Cpupool (.*): ratelimit=[0-9]+us\Z'),
    'credit': re.compile(
        r'Cpupool (.*): tslice=[0-9]+ms ratelimit=[0-9]+us'
        r'( migration-delay=[0-9]+us)?\Z'
    ),
}
_DOMAIN = re.compile(
    r'.* ([0-9]{1,5}) +([0-9]{1,6}) +([0-9]{1,6})\Z', re.ASCII
)
_DOMAIN_TITLE = re.compile(r'Name +ID +Weight +Cap\Z')

_PR_SET_NO_NEW_PRIVS = 38

#: No parameter may be set between the check of the sum and the command.
_setting = threading.Lock()

#: Of one vCPU: its number, period and budget in microseconds, and whether it
#: gets idle time.
VcpuValues = tuple[int, int, int, bool]
#: The same after the number of the domain.
_Listed = tuple[int, int, int, int, bool]


class ToolstackError(OSError):
    """The toolstack is missing, fails or hangs."""


@xen_pctxt.entrypoint
def info() -> dict[str, str]:
    """Return what is known of the hypervisor.

    :returns: some of ``xl info``: :data:`INFO_KEYS`.
    :raises OSError: when the toolstack does not answer.
    """
    return _info()


@xen_pctxt.entrypoint
def rtds_parameters() -> dict[str, ty.Any]:
    """Return the parameters of all vCPUs that RTDS schedules.

    :returns: ``pools``, the number of CPU pools, and ``vcpus``: (domain, vCPU,
        period_us, budget_us, extratime) of each. Both are empty with another
        scheduler.
    :raises OSError: when the toolstack does not answer, or unlike known
        versions.
    """
    pools, vcpus = _listed()
    return {'pools': pools, 'vcpus': vcpus}


@xen_pctxt.entrypoint
def set_rtds(domid: int, values: Sequence[VcpuValues]) -> str:
    """Set the parameters of vCPUs of one domain.

    :param domid: Xen's number of the domain; not the first one's.
    :returns: empty on success, else the reason; the toolstack may then have
        set some of them.
    :raises PermissionError: for another domain, or values out of bounds;
        nothing is set then.
    :raises OSError: with EBUSY and the figures, when the budgets of all vCPUs
        of the host would exceed its CPUs; nothing is set then. Otherwise when
        the toolstack does not answer.
    """
    _check(domid, 1, MAX_DOMID, 'a domain')
    if not 0 < len(values) <= MAX_VCPUS:
        raise PermissionError('%d vCPUs are refused' % len(values))
    options = []
    seen = set()
    for index, period_us, budget_us, extratime in values:
        _check(index, 0, MAX_VCPUS - 1, 'a vCPU')
        _check(period_us, LEAST_US, MOST_US, 'a period')
        _check(budget_us, LEAST_US, period_us, 'a budget')
        if not isinstance(extratime, bool) or index in seen:
            raise PermissionError('vCPU %d is refused' % index)
        seen.add(index)
        options.append(
            '-v %d -p %d -b %d -e %d'
            % (index, period_us, budget_us, extratime)
        )
    with _setting:
        _check_sum(domid, values)
        try:
            for begin in range(0, len(options), COMMAND_VCPUS):
                words = ' '.join(options[begin : begin + COMMAND_VCPUS])
                _run('sched-rtds', '-d', str(domid), *words.split())
        except ToolstackError as failure:
            return str(failure)[:500]
    return ''


@xen_pctxt.entrypoint
def credit_parameters(scheduler: str) -> dict[str, ty.Any]:
    """Return the parameters of all domains that a scheduler schedules.

    :param scheduler: credit2 or credit.
    :returns: ``pools``, the number of CPU pools, and ``domains``: (domain,
        weight, cap) of each. Both are empty with another scheduler.
    :raises PermissionError: for another name.
    :raises OSError: when the toolstack does not answer, or unlike known
        versions.
    """
    pools, domains = _listed_domains(scheduler)
    return {
        'pools': pools,
        'domains': [(domid, *one) for domid, one in domains.items()],
    }


@xen_pctxt.entrypoint
def set_credit(scheduler: str, domid: int, weight: int, cap: int) -> str:
    """Set the weight and the cap of a domain, by one command.

    :param scheduler: credit2 or credit, whichever runs.
    :param domid: Xen's number of the domain; not the first one's.
    :param cap: percent of a CPU; 0 for none.
    :returns: empty on success, else the reason.
    :raises PermissionError: for another name or domain, or values out of
        bounds; nothing is set then.
    :raises OSError: with EBUSY and the figures, when the weights of all
        domains, in mcpu and as far as their caps let them count, would exceed
        the CPUs of the host; nothing is set then. Otherwise when the toolstack
        does not answer.
    """
    _check(domid, 1, MAX_DOMID, 'a domain')
    _check(weight, 1, MAX_WEIGHT, 'a weight')
    _check(cap, 0, MAX_CAP, 'a cap')
    with _setting:
        _check_weights(scheduler, domid, (weight, cap))
        try:
            _run(
                *('sched-' + scheduler, '-d', str(domid)),
                *('-w', str(weight), '-c', str(cap)),
            )
        except ToolstackError as failure:
            return str(failure)[:500]
    return ''


def _check_weights(
    scheduler: str, domid: int, values: tuple[int, int]
) -> None:
    """Refuse weights that grow beyond the host's CPUs.

    A sum that does not grow passes: each new domain gets a weight from Xen.

    :raises OSError: with EBUSY and the figures; also when the toolstack does
        not answer.
    """
    before = _listed_domains(scheduler)[1]
    after = before | {domid: values}
    asked = sum(_mcpu(*one) for one in after.values())
    if asked <= sum(_mcpu(*one) for one in before.values()):
        return
    cpus = _cpus()
    if asked > 1000 * cpus:
        own = _mcpu(*values)
        raise OSError(
            errno.EBUSY,
            'the weights of all domains would be %d mcpu of %d: %d of domain '
            '%d, and %d of all others'
            % (asked, 1000 * cpus, own, domid, asked - own),
        )


def _mcpu(weight: int, cap: int) -> int:
    # A weight gives no more than the cap.
    return min(weight, 10 * cap) if cap else weight


def _check_sum(domid: int, values: Sequence[VcpuValues]) -> None:
    """Refuse a sum of all budgets that grows beyond the host's CPUs.

    One that does not grow passes: vCPUs that were started since may already
    have more than there is, as each gets a budget from Xen.

    :raises OSError: with EBUSY and the figures; also when the toolstack does
        not answer.
    """
    before = {
        (listed, index): _share(budget_us, period_us)
        for listed, index, period_us, budget_us, _ in _listed()[1]
    }
    after = before | {
        (domid, index): _share(budget_us, period_us)
        for index, period_us, budget_us, _ in values
    }
    asked = sum(after.values())
    if asked <= sum(before.values()):
        return
    cpus = _cpus()
    if asked > cpus:
        own = sum(share for key, share in after.items() if key[0] == domid)
        raise OSError(
            errno.EBUSY,
            'the budgets of all vCPUs would be %d mcpu of %d: %d of domain '
            '%d, and %d of all others'
            % (
                math.ceil(1000 * asked),
                1000 * cpus,
                math.ceil(1000 * own),
                domid,
                math.ceil(1000 * (asked - own)),
            ),
        )


def _share(budget_us: int, period_us: int) -> Fraction:
    # What a domain was given as a whole is not bounded by Xen.
    return min(Fraction(1), Fraction(budget_us, max(1, period_us)))


def _info() -> dict[str, str]:
    matches = map(_INFO.match, _run('info').split('\n'))
    return {
        match[1]: match[2].strip()
        for match in matches
        if match and match[1] in INFO_KEYS
    }


def _cpus() -> int:
    """Return the number of the host's CPUs.

    :raises OSError: when the toolstack does not report it.
    """
    cpus = _info().get('nr_cpus', '')
    if not cpus.isdecimal():
        raise OSError('xl info lacks the number of CPUs')
    return int(cpus)


def _listed_domains(scheduler: str) -> tuple[int, dict[int, tuple[int, int]]]:
    """Return the number of pools, and weight and cap by domain.

    :raises PermissionError: for another scheduler than credit2 and credit.
    :raises OSError: when the toolstack does not answer, or unlike known
        versions.
    """
    if scheduler not in _OF_DOMAINS:
        raise PermissionError('scheduler %.80r is refused' % (scheduler,))
    pools = 0
    domains: dict[int, tuple[int, int]] = {}
    for line in _run('sched-' + scheduler).split('\n'):
        match = _DOMAIN.match(line.rstrip())
        if match:
            domid, weight, cap = map(int, match.groups())
            if domid in domains:
                raise OSError('xl lists domain %d twice' % domid)
            domains[domid] = weight, cap
        elif _OF_DOMAINS[scheduler].match(line.rstrip()):
            pools += 1
        elif line.strip() and not _DOMAIN_TITLE.match(line.strip()):
            raise OSError('xl prints what is not known: %.80r' % line)
    return pools, domains


def _listed() -> tuple[int, list[_Listed]]:
    """Return the number of pools and the parameters of all vCPUs.

    :raises OSError: when the toolstack does not answer, or unlike known
        versions.
    """
    pools = 0
    vcpus: dict[tuple[int, int], _Listed] = {}
    for line in _run('sched-rtds', '-v', 'all').split('\n'):
        match = _VCPU.match(line.rstrip())
        if match:
            domid, index, period_us, budget_us = map(int, match.groups()[:4])
            if (domid, index) in vcpus:
                raise OSError('xl lists vCPU %d of %d twice' % (index, domid))
            vcpus[domid, index] = (
                domid,
                index,
                period_us,
                budget_us,
                match[5] == 'yes',
            )
        elif _POOL.match(line.rstrip()):
            pools += 1
        elif line.strip() and not _TITLE.match(line.strip()):
            raise OSError('xl prints what is not known: %.80r' % line)
    return pools, list(vcpus.values())


def _check(value: object, least: int, most: int, what: str) -> None:
    """Refuse what is no whole number in bounds."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or not least <= value <= most
    ):
        raise PermissionError(
            '%.80r is refused: no whole number from %d to %d for %s'
            % (value, least, most, what)
        )


def _run(*arguments: str) -> str:
    """Run the toolstack and return its output.

    Names of domains are in it, which may have any bytes but the end of a
    line. Neither the locale of this process nor Python's other ends of lines
    apply to them.

    :raises ToolstackError: when it fails.
    """
    _drop_new_privileges()
    with isolated.start(
        (_xl(), *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            output, problem = (
                text.decode('utf-8', 'replace')
                for text in process.communicate(timeout=TIMEOUT_S)
            )
        except subprocess.TimeoutExpired:
            process.kill()
            raise ToolstackError(
                'xl %s took longer than %g s' % (arguments[0], TIMEOUT_S)
            ) from None
    if process.returncode:
        raise ToolstackError(
            'xl %s: %s'
            % (
                arguments[0],
                ' '.join(problem.split())[:300]
                or 'exit code %d' % process.returncode,
            )
        )
    if len(output) > MAX_CHARS:
        raise ToolstackError('xl %s printed too much' % arguments[0])
    return str(output)


def _drop_new_privileges() -> None:
    """Have new processes of root get no more capabilities than this one.

    :raises ToolstackError: when the kernel refuses.
    """
    if ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise ToolstackError('PR_SET_NO_NEW_PRIVS is refused')


def _xl() -> str:
    """Return the path of the toolstack's program.

    :raises ToolstackError: when there is none.
    """
    try:
        version = '.'.join(
            _read('/sys/hypervisor/version/' + one) for one in _VERSION
        )
    except (OSError, ValueError):
        version = '0.0'
    for path in XL:
        path = path.replace('%s', version)
        if os.access(path, os.X_OK):
            return path
    raise ToolstackError(
        'there is no xl: this is no first domain of Xen, or its toolstack is '
        'not installed'
    )


_VERSION = ('major', 'minor')


def _read(path: str) -> str:
    with open(path, encoding='ascii') as file:
        return str(int(file.read(16)))
