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

"""What benchmarks on real VMs need of the machine."""

import os

import libvirt

from benchmarks import frame
from vsched_agent.tests import fixtures


def guests() -> None:
    """The tiny guest, and a libvirt to run it.

    :raises frame.Unavailable: saying what is missing.
    """
    if not (fixtures.GUEST_DIR / 'vmlinux').exists():
        raise frame.Unavailable(
            'needs the tiny guest; tools/guest/build.sh makes it')
    try:
        libvirt.open(fixtures.URI).close()
    except libvirt.libvirtError as error:
        raise frame.Unavailable('needs libvirt: %s' % error) from error


def two_cpus() -> None:
    """CPUs for VMs to share.

    :raises frame.Unavailable: when there is one only.
    """
    if (os.cpu_count() or 1) < 2:
        raise frame.Unavailable('needs two CPUs')
