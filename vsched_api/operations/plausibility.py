# SPDX-License-Identifier: Apache-2.0

"""Clamp implausible values that a host reports of itself.

The scheduler filters use these values. They are clamped before they are
stored, and an event lists the clamped ones.
"""

import typing as ty

from vsched_lib.model import reservation

#: Default of the maximum number of CPUs of a host.
MAX_CPUS = 4096


def bound(
    info: dict[str, ty.Any], max_cpus: int
) -> tuple[dict[str, ty.Any], list[str]]:
    """Clamp the values that a host reports of itself.

    :param info: a ``messages.HostInfo`` as a JSON object.
    :param max_cpus: the maximum number of CPUs of a host.
    :returns: the clamped info, and a sentence for each clamped value.
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
