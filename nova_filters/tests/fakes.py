# SPDX-License-Identifier: Apache-2.0

"""Answers of the service, and a source that returns them."""

import dataclasses
import threading
import typing as ty

from vsched_lib.contract import snapshot

FACTS = snapshot.Facts(2, 4_000, 1_900, ('deadline', 'cfs'))


def snapshot_threads() -> set[threading.Thread]:
    """Return the threads of caches; other tests' may start others."""
    return {
        thread
        for thread in threading.enumerate()
        if thread.name == 'vsched-snapshot'
    }


def host(
    name: str = 'node1', version: int = 1, **changes: ty.Any
) -> snapshot.Host:
    """Return an empty host of two CPUs; changes may be of its facts."""
    facts = {field.name for field in dataclasses.fields(snapshot.Facts)}
    values: dict[str, ty.Any] = {
        'admitted_mcpu': 0,
        'facts': dataclasses.replace(
            FACTS,
            **{
                name: value for name, value in changes.items() if name in facts
            },
        ),
    }
    return snapshot.Host(
        name,
        version,
        **{
            **values,
            **{
                name: value
                for name, value in changes.items()
                if name not in facts
            },
        },
    )


def certificate(
    lower_ppm: int | None, period_us: int = 20_000
) -> snapshot.Certificate:
    """Return one of the backend ``deadline``, for shares from 10 % on."""
    return snapshot.Certificate(
        'deadline', period_us, (100_000, 900_000), (lower_ppm, lower_ppm)
    )


def answer(*hosts: snapshot.Host, **changes: ty.Any) -> snapshot.Snapshot:
    """Return an answer; of all hosts unless ``full`` is false."""
    return snapshot.Snapshot(
        **{
            'version': max((one.version for one in hosts), default=0),
            'full': True,
            'more': False,
            'hosts': hosts,
            'removed': (),
            'down': (),
            **changes,
        }
    )


class Source:
    """Returns answers one after the other; then nothing is new."""

    def __init__(self, *answers: ty.Any) -> None:
        self.answers = list(answers)
        self.asked: list[ty.Any] = []

    def get(self, since: int | None = None, tag: str | None = None) -> ty.Any:
        """See :class:`nova_filters.source.Source`."""
        self.asked.append((since, tag))
        if not self.answers:
            return None, tag
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found, 'tag%d' % found.version


@dataclasses.dataclass
class State:
    """The part of Nova's HostState that judging uses."""

    host: str = 'node1'
    nodename: str = 'node1.example.org'
    num_instances: int = 3
    allocation_candidates: ty.Sequence[ty.Any] = ('candidate',)
