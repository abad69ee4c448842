# SPDX-License-Identifier: Apache-2.0

"""What a host says of itself and cannot be.

Schedulers place instances by it, so it is brought within bounds before it is
stored, and an event says so.
"""

import typing as ty

from vsched_lib.model import reservation

#: The most CPUs of a host, unless it is set.
MAX_CPUS = 4096


def bound(
    info: dict[str, ty.Any], max_cpus: int
) -> tuple[dict[str, ty.Any], list[str]]:
    """Bring what a host says of itself within bounds.

    :param info: a ``messages.HostInfo`` as a JSON object.
    :param max_cpus: the most CPUs that a host may have.
    :returns: what is believed, and what was not, a sentence each.
    """
    problems = []
    cpus = info['cpus']
    if cpus > max_cpus:
        problems.append(
            'it has %d CPUs, [collector] max_host_cpus is %d'
            % (cpus, max_cpus)
        )
        cpus = max_cpus
    whole_mcpu = cpus * reservation.MCPU_PER_CPU
    values = {'cpus': cpus}
    for name in ('capacity_mcpu', 'admitted_mcpu'):
        value = info[name]
        values[name] = min(max(value, 0), whole_mcpu)
        if values[name] != value:
            problems.append(
                '%s %d is not 0 to %d, what %d CPUs have'
                % (name, value, whole_mcpu, cpus)
            )
    return {**info, **values}, problems
