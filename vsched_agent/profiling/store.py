# SPDX-License-Identifier: Apache-2.0

"""This host's profiles, in files.

``SOURCE-VERSION.json`` each, written whole or not at all, so that whoever
measures and whoever enforces need not be one process.
"""

from collections.abc import Iterator
import contextlib
import json
import os
import re
import tempfile
import typing as ty

from oslo_log import log as logging

from vsched_lib.contract import profiles

LOG = logging.getLogger(__name__)

_NAME = re.compile(r'(benchmark|live)-([0-9]{6,})\.json\Z', re.ASCII)

Source = profiles.ProfileSource


Kind = ty.TypeVar('Kind', profiles.ErrorProfile, profiles.OverheadProfile)


class Profiles(ty.Generic[Kind]):
    """The profiles of one kind of one host.

    :param kind: of profiles.
    :param folder: made at the first :meth:`keep`.
    :param keep: how many of each source are kept.
    """

    def __init__(self, kind: type[Kind], folder: str, keep: int = 20) -> None:
        self._kind: type[Kind] = kind
        self._folder = folder
        self._keep = keep

    def next_version(self, source: Source) -> int:
        """What the next profile of a source is numbered."""
        return max(self._versions(source), default=0) + 1

    def keep(self, profile: Kind) -> None:
        """Keep a profile for good, and let go of the oldest.

        :raises OSError: when it can not be written; nothing is changed then.
        """
        os.makedirs(self._folder, mode=0o750, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=self._folder, suffix='.new')
        try:
            with open(handle, 'w', encoding='utf-8') as file:
                json.dump(profile.to_dict(), file)
                file.flush()
                os.fsync(file.fileno())
            os.rename(path, self._path(profile.source, profile.version))
        except BaseException:
            os.unlink(path)
            raise
        for version in sorted(self._versions(profile.source))[: -self._keep]:
            os.unlink(self._path(profile.source, version))

    def latest(self, source: Source) -> Kind | None:
        """The newest profile of a source that can be read."""
        for version in sorted(self._versions(source), reverse=True):
            found = self.load(source, version)
            if found is not None:
                return found
        return None

    def load(self, source: Source, version: int) -> Kind | None:
        """One profile; None when it is not there or can not be read."""
        path = self._path(source, version)
        try:
            with open(path, encoding='utf-8') as file:
                return self._kind.from_dict(json.load(file))
        except FileNotFoundError:
            return None
        except (ValueError, OSError) as problem:
            LOG.warning('%s is passed over: %s', path, problem)
            return None

    def newest(self) -> dict[Source, int]:
        """By source, the newest version; looks at the folder only."""
        return {
            source: max(versions)
            for source in Source
            if (versions := set(self._versions(source)))
        }

    def versions(self, source: Source) -> list[int]:
        """The versions of a source that are kept, the oldest first."""
        return sorted(self._versions(source))

    def _versions(self, source: Source) -> Iterator[int]:
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                match = _NAME.match(name)
                if match and match[1] == source:
                    yield int(match[2])

    def _path(self, source: Source, version: int) -> str:
        return os.path.join(self._folder, '%s-%06d.json' % (source, version))
