# SPDX-License-Identifier: Apache-2.0

"""A folder with a file for each domain that runs on a simulated host."""

import contextlib
import dataclasses
import json
import os
import typing as ty

#: What the folder is called, in its host's own.
NAME = 'domains'


@dataclasses.dataclass(frozen=True, slots=True)
class Running:
    """One domain.

    :param start: another one each time that it starts.
    """

    uuid: str
    name: str
    vcpus: int
    extra_specs: dict[str, str]
    start: str


class Folder:
    """The domains of one host; made when it isn't there.

    :param path: of the folder.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        os.makedirs(path, exist_ok=True)

    def begin(
        self,
        uuid: str,
        name: str,
        vcpus: int,
        extra_specs: ty.Mapping[str, str],
    ) -> None:
        """It runs now; nothing happens to one that runs already."""
        if os.path.exists(self._file(uuid)):
            return
        part = self._file(uuid) + '.part'
        with open(part, 'w', encoding='utf-8') as file:
            json.dump(
                {
                    'uuid': uuid,
                    'name': name,
                    'vcpus': vcpus,
                    'extra_specs': dict(extra_specs),
                    'start': os.urandom(8).hex(),
                },
                file,
            )
        os.rename(part, self._file(uuid))

    def end(self, uuid: str) -> None:
        """It doesn't run any more."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._file(uuid))

    def running(self) -> dict[str, Running]:
        """All that run, by UUID."""
        found = {}
        for name in os.listdir(self._path):
            if not name.endswith('.json'):
                continue
            with contextlib.suppress(FileNotFoundError):
                with open(
                    os.path.join(self._path, name), encoding='utf-8'
                ) as file:
                    one = Running(**json.load(file))
                found[one.uuid] = one
        return found

    def _file(self, uuid: str) -> str:
        return os.path.join(self._path, uuid + '.json')
