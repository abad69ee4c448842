# SPDX-License-Identifier: Apache-2.0

"""What hosts of the fleet have measured that are in use otherwise little."""

import typing as ty
import uuid

from vsched_api.tests import base
from vsched_lib.contract import certification
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles

CPUS = 16
#: The release of their kernel.
KERNEL = '6.1.0-28-amd64'
#: Hosts whose certificates or prices are not in force: more threads than
#: were measured; another kernel, and a poor fit of the prices. The last has
#: certificates of a quick run, which bound nothing.
WITHDRAWN, OUT_OF_DATE, QUICK = 2, 3, 4

_NAMESPACE = uuid.UUID('e3f1a0c2-7d54-4b0e-9a41-0c6b7d2e8f15')


def parts(number: int, name: str, now: float) -> dict[str, ty.Any]:
    """Return what a host reports of its profiles.

    :param number: of the host, from 1.
    :param name: of the host.
    :param now: seconds since the epoch.
    :returns: parts of a report; none of most hosts.
    """
    if number == WITHDRAWN:
        return _withdrawn(name, now)
    if number == OUT_OF_DATE:
        return _out_of_date(name, now)
    if number == QUICK:
        return {
            'error_profiles': (_errors(name, now, windows=6, quick=True),),
            'events': (event(now - 86_400, quick=True),),
        }
    return {}


def event(at: float, **figures: ty.Any) -> messages.Event:
    """Return the event of an error profile that was measured."""
    return base.event(
        at,
        code='vsched.profile.measured',
        detail='error profile 1 was measured: 20 points',
        figures={
            'version': 1,
            'points': 20,
            'complete': True,
            'quick': False,
            'finished_at': at,
            **figures,
        },
    )


def _withdrawn(name: str, now: float) -> dict[str, ty.Any]:
    return {
        'error_profiles': (
            _errors(
                name,
                now,
                features={'budget_check_us': 500, certification.THREADS: 5},
                notes=(
                    "0.4 % of the CPUs' time was stolen from this host "
                    'meanwhile',
                ),
            ),
        ),
        'overhead_profiles': (_prices(name, now),),
        'events': (
            event(now - 86_400),
            base.event(
                now - 7_000,
                code='vsched.certificates.withdrawn',
                severity=messages.Severity.WARNING,
                detail='the certificates of error profile 1 are withdrawn: '
                'it was measured with 5 reserved threads, and the host has 9',
                figures={'threads': 9, 'certified_threads': 5},
            ),
        ),
    }


def _out_of_date(name: str, now: float) -> dict[str, ty.Any]:
    return {
        'error_profiles': (_errors(name, now, kernel='6.1.0-18-amd64'),),
        'overhead_profiles': (_prices(name, now, good=False, r2=0.62),),
        'events': (
            event(now - 86_400),
            base.event(
                now - 6_900,
                code='vsched.profile.poor',
                severity=messages.Severity.WARNING,
                detail='overhead profile 1 of source benchmark explains only '
                '62 % of what was seen; its prices are not used',
                figures={'source': 'benchmark', 'r2': 0.62},
            ),
        ),
    }


def _run(name: str, kind: str, start: float, end: float) -> dict[str, ty.Any]:
    return {
        'uuid': str(uuid.uuid5(_NAMESPACE, '%s %s' % (name, kind))),
        'version': 1,
        'started_at': start,
        'finished_at': end,
        'kernel': KERNEL,
        'cpus': CPUS,
    }


def _prices(
    name: str, now: float, **changes: ty.Any
) -> profiles.OverheadProfile:
    run = _run(name, 'overhead', now - 7_200, now - 6_900)
    made: profiles.OverheadProfile = overhead_profiles.profile(
        **{**run, **changes}
    )
    return made


def _errors(name: str, now: float, **changes: ty.Any) -> profiles.ErrorProfile:
    run = _run(name, 'error', now - 90_000, now - 86_400)
    made: profiles.ErrorProfile = error_profiles.full(
        **{
            'windows': 180,
            'shares_ppm': (50_000, 100_000, 300_000, 500_000),
            **run,
            **changes,
        }
    )
    return made
