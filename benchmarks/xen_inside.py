# SPDX-License-Identifier: Apache-2.0

"""What ``benchmarks.xen`` measures in the lab node with Xen.

    python -m benchmarks.xen_inside shares SECONDS FILE
    python -m benchmarks.xen_inside balloon ROUNDS FILE

Writes figures as JSON. ``shares`` takes SECONDS for each share, by the clock
of the node.
"""

from collections.abc import Iterable
import contextlib
import functools
import itertools
import json
import pathlib
import statistics
import sys
import time

import libvirt

from benchmarks import xen_guests
from vsched_agent.enforcement import base
from vsched_agent.enforcement.xen import backends
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.tests.functional.xen import xen_case
from vsched_lib.model import reservation

#: What vCPUs are promised, in percent, by the number of them. All of a guest
#: have the same, and the sum must fit beside the first domain.
PROMISED_PCT = {1: (10, 30, 60), 4: (10, 30)}
PERIOD_US = 100_000
#: After a change, until the former budget has ended.
_SETTLE_S = 2.0
#: A share is sampled so often.
_WINDOWS = 5
#: How many vCPUs a guest has before and after the others are taken off.
_VCPUS = 4


def main() -> int:
    """Measure, and write the figures.

    :returns: the exit code
    """
    what, number, path = sys.argv[1:]
    events = {'shares': _shares, 'balloon': _balloon}[what](float(number))
    pathlib.Path(path).write_text(json.dumps(events), encoding='utf-8')
    return 0


def key(vcpus: int, pct: int) -> str:
    """Return the name of a share."""
    return '%d_vcpus_%d_pct' % (vcpus, pct)


def _shares(seconds: float) -> dict[str, float]:
    """Return what vCPUs get of what they are promised, in percent of a CPU.

    Another guest is busy on all CPUs.
    """
    name = reservation.Backend(scheduler.Scheduler().name)
    (backend,) = backends.make([name])
    found: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        connection = libvirt.open(xen_case.URI)
        stack.callback(connection.close)
        cpus = int(connection.getInfo()[2])

        def start(vcpus: int) -> xen_guests.Guest:
            # Guests boot one after the other, each on an idle host.
            guest = stack.enter_context(
                xen_guests.guest(connection, vcpus=vcpus)
            )
            guest.handle.suspend()
            backend.apply_each(
                [(one, _little(name)) for one in guest.targets(vcpus)]
            )
            return guest

        measured = {vcpus: start(vcpus) for vcpus in PROMISED_PCT}
        start(cpus).handle.resume()
        for vcpus, guest in measured.items():
            guest.handle.resume()
            for pct in PROMISED_PCT[vcpus]:
                shares = _promise(backend, name, guest, vcpus, pct, seconds)
                label = key(vcpus, pct)
                found[label] = 100 * statistics.fmean(shares)
                found[label + '_sd'] = 100 * statistics.stdev(shares)
            guest.handle.suspend()
    found['cpus'] = cpus
    return found


def _little(name: reservation.Backend) -> reservation.Reservation:
    """Return what those have that are not measured: idle time, else little.

    What new vCPUs have of RTDS would take the capacity.
    """
    return reservation.Reservation(
        PERIOD_US // 100,
        PERIOD_US,
        reservation.Mode.WORK_CONSERVING,
        backend=name,
    )


def _promise(
    backend: base.Backend,
    name: reservation.Backend,
    guest: xen_guests.Guest,
    vcpus: int,
    pct: int,
    seconds: float,
) -> list[float]:
    """Return what each vCPU of a guest gets, on average, by window."""
    asked = reservation.Reservation(
        PERIOD_US * pct // 100, PERIOD_US, backend=name
    )
    targets = guest.targets(vcpus)
    prior = backend.prior(targets)
    backend.apply_each([(target, asked) for target in targets])
    try:
        time.sleep(_SETTLE_S)
        samples = [guest.sample()]
        for _ in range(_WINDOWS):
            time.sleep(seconds / _WINDOWS)
            samples.append(guest.sample())
    finally:
        backend.restore(targets, prior)
    return [
        after.share_since(before) / vcpus
        for before, after in itertools.pairwise(samples)
    ]


def _balloon(rounds: float) -> dict[str, float]:
    """Return how long guests take to give vCPUs back, and to take them."""
    found = {}
    connection = libvirt.open(xen_case.URI)
    try:
        for kind in xen_case.KINDS:
            with xen_guests.guest(connection, kind, _VCPUS) as guest:
                taken_s = [
                    seconds
                    for _ in range(int(rounds))
                    for seconds in _steps(guest, (1, _VCPUS))
                ]
            found[kind + '_s'] = statistics.fmean(taken_s)
            found[kind + '_max_s'] = max(taken_s)
    finally:
        connection.close()
    return found


def _steps(guest: xen_guests.Guest, counts: Iterable[int]) -> list[float]:
    """Change the number of vCPUs; return how long the guest takes."""
    taken_s = []
    for count in counts:
        began_s = time.monotonic()
        guest.handle.setVcpus(count)
        xen_guests.wait_for(
            functools.partial(guest.has_online, count), '%d vCPUs' % count
        )
        taken_s.append(time.monotonic() - began_s)
    return taken_s


if __name__ == '__main__':
    sys.exit(main())
