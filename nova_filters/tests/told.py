# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What the service may tell of hosts."""

import dataclasses
import typing as ty

from vsched_lib.contract import snapshot

FACTS = snapshot.Facts(2, 4_000, 1_900, ('deadline', 'cfs'))


def host(name: str = 'node1', version: int = 1,
         **changes: ty.Any) -> snapshot.Host:
    """A host of two CPUs that is empty; changes may be of its facts."""
    facts = {field.name for field in dataclasses.fields(snapshot.Facts)}
    values: dict[str, ty.Any] = {
        'admitted_mcpu': 0, 'facts': dataclasses.replace(FACTS, **{
            name: value for name, value in changes.items()
            if name in facts})}
    return snapshot.Host(name, version, **{**values, **{
        name: value for name, value in changes.items()
        if name not in facts}})


def certificate(lower_ppm: int | None,
                period_us: int = 20_000) -> snapshot.Certificate:
    """Of the backend ``deadline``, for all shares from 10 % on."""
    return snapshot.Certificate(
        'deadline', period_us, (100_000, 900_000), (lower_ppm, lower_ppm))


def answer(*hosts: snapshot.Host, **changes: ty.Any) -> snapshot.Snapshot:
    """All hosts, unless ``full`` is false."""
    return snapshot.Snapshot(**{
        'version': max((one.version for one in hosts), default=0),
        'full': True, 'more': False, 'max_margin_ppm': 250_000,
        'max_overhead_ppm': 500_000, 'hosts': hosts, 'removed': (),
        'down': (), **changes})


class Source:
    """Gives answers one after the other; then nothing is new."""

    def __init__(self, *answers: ty.Any) -> None:
        self.answers = list(answers)
        self.asked: list[ty.Any] = []

    def get(self, since: int | None = None,
            tag: str | None = None) -> ty.Any:
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
    """What judging uses of Nova's HostState."""

    host: str = 'node1'
    nodename: str = 'node1.example.org'
    num_instances: int = 3
