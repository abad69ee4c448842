# SPDX-License-Identifier: Apache-2.0

"""nova-compute with a hypervisor that is a folder.

    python -m vsched_standalone.tests.region.nova_driver OPTION...

Nova's own fake driver, and each server that runs is a file: see
:mod:`vsched_standalone.tests.region.domains`. The agent beside it sees them
as domains.
"""

import os
import sys

from nova.cmd import compute
from nova import conf
from nova.virt import fake

from vsched_standalone.tests.region import domains


class Driver(fake.FakeDriverWithoutFakeNodes):
    """Servers that begin and end when Nova says so."""

    def __init__(self, virtapi, read_only=False):
        super().__init__(virtapi, read_only)
        self._folder = domains.Folder(
            os.path.join(conf.CONF.state_path, domains.NAME)
        )

    def _began(self, instance):
        self._folder.begin(
            instance.uuid,
            instance.name,
            instance.flavor.vcpus,
            instance.flavor.extra_specs or {},
        )

    def spawn(self, context, instance, *args, power_on=True, **kwargs):
        super().spawn(context, instance, *args, power_on=power_on, **kwargs)
        if power_on:
            self._began(instance)

    def destroy(self, context, instance, *args, **kwargs):
        self._folder.end(instance.uuid)
        super().destroy(context, instance, *args, **kwargs)

    def reboot(
        self, context, instance, network_info, reboot_type, *args, **kwargs
    ):
        # A guest that is only told to reboot keeps its threads.
        if reboot_type.lower() == 'hard':
            self._folder.end(instance.uuid)
        super().reboot(
            context, instance, network_info, reboot_type, *args, **kwargs
        )

    def power_off(self, instance, *args, **kwargs):
        super().power_off(instance, *args, **kwargs)
        self._folder.end(instance.uuid)

    def power_on(self, context, instance, *args, **kwargs):
        super().power_on(context, instance, *args, **kwargs)
        self._began(instance)

    def migrate_disk_and_power_off(self, context, instance, *args, **kwargs):
        self._folder.end(instance.uuid)
        return super().migrate_disk_and_power_off(
            context, instance, *args, **kwargs
        )

    def finish_revert_migration(
        self,
        context,
        instance,
        network_info,
        migration,
        block_device_info=None,
        power_on=True,
        **kwargs,
    ):
        super().finish_revert_migration(
            context,
            instance,
            network_info,
            migration,
            block_device_info,
            power_on,
            **kwargs,
        )
        if power_on:
            self._began(instance)


if __name__ == '__main__':
    # Nova takes drivers from this package only.
    sys.modules['nova.virt.told'] = sys.modules[__name__]
    sys.exit(compute.main())
