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

"""How the CPUs of this host lie to each other."""

import pathlib

from vsched_agent.enforcement import kernel


def ordered_cpus(root: str = '/') -> list[int]:
    """The CPUs that are online, those close to each other side by side.

    Threads of one core come first together, then cores of one package.

    :param root: the file system's top, for tests with one of their own.
    """
    return sorted(kernel.online_cpus(root),
                  key=lambda cpu: (*_place(root, cpu), cpu))


def _place(root: str, cpu: int) -> tuple[int, int]:
    folder = pathlib.Path(
        root, 'sys/devices/system/cpu/cpu%d' % cpu, 'topology')
    return (_number(folder / 'physical_package_id'),
            _number(folder / 'core_id'))


def _number(path: pathlib.Path) -> int:
    try:
        return int(path.read_text(encoding='ascii'))
    except (OSError, ValueError):
        # A machine that does not tell has them all in one place.
        return 0
