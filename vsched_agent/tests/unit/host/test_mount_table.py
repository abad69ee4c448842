# SPDX-License-Identifier: Apache-2.0

import ddt
from oslotest import base

from vsched_agent.host import mount_table

_TOP = '23 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n'
_V1 = (
    _TOP
    + """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
"""
)
_HYBRID = (
    _V1
    + """\
41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
)
_V2 = (
    _TOP
    + """\
31 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
"""
)
_V1_CPU = '/sys/fs/cgroup/cpu,cpuacct'


@ddt.ddt
class TestChoose(base.BaseTestCase):
    def point(self, text, controller):
        mount = mount_table.choose(text).get(controller)
        return mount and (mount.version, mount.point, mount.root)

    @ddt.data(
        (_V1, 'cpu', (1, _V1_CPU, '/')),
        (_V1, 'cpuacct', (1, _V1_CPU, '/')),
        (_V1, '', None),
        (_HYBRID, 'cpuset', (1, '/sys/fs/cgroup/cpuset', '/')),
        (_HYBRID, '', (2, '/sys/fs/cgroup/unified', '/')),
        (_V2, '', (2, '/sys/fs/cgroup', '/')),
        (_V2, 'cpu', None),
        ('', 'cpu', None),
    )
    @ddt.unpack
    def test_one_mount_each(self, text, controller, wanted):
        self.assertEqual(wanted, self.point(text, controller))

    @ddt.data(
        '90 23 0:29 / /srv/chroot/sys/fs/cgroup/cpu rw - cgroup cgroup '
        'rw,cpu,cpuacct',
        '90 23 0:29 /docker/abc /srv/build/cgroup rw - cgroup cgroup '
        'rw,cpu,cpuacct',
        '90 31 0:29 /docker/abc /sys/fs/cgroup/other rw - cgroup cgroup '
        'rw,cpu,cpuacct',
        '90 31 0:29 / /sys/fs/cgroup/zzz rw - cgroup cgroup rw,cpu,cpuacct',
    )
    def test_an_extra_mount_changes_nothing(self, extra):
        """Before the standard one in the table, and behind it."""
        for text in (
            _V1 + extra + '\n',
            _TOP + extra + '\n' + _V1.removeprefix(_TOP),
        ):
            mount = mount_table.choose(text)['cpu']
            self.assertEqual('/', mount.root)
            if 'zzz' not in extra:
                self.assertEqual(_V1_CPU, mount.point)

    def test_unified_with_extra_mounts(self):
        for extra in (
            '90 23 0:27 / /srv/chroot/sys/fs/cgroup',
            '90 23 0:27 /system.slice/build /srv/cgroup',
            '22 23 0:27 / /mnt/first',
        ):
            text = extra + ' rw - cgroup2 cgroup2 rw\n'
            for table in (_V2 + text, text + _V2):
                self.assertEqual(
                    (2, '/sys/fs/cgroup', '/'), self.point(table, '')
                )

    def test_a_whole_hierarchy_elsewhere_before_a_part(self):
        text = _TOP + (
            '40 23 0:29 /box /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n'
            '41 23 0:29 / /cgroup/cpu rw - cgroup cgroup rw,cpu\n'
        )
        self.assertEqual((1, '/cgroup/cpu', '/'), self.point(text, 'cpu'))

    def test_a_container_has_a_part_only(self):
        text = _TOP + (
            '31 23 0:27 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n'
        )
        self.assertEqual(
            (2, '/sys/fs/cgroup', '/docker/abc'), self.point(text, '')
        )

    def test_a_hidden_mount_is_none(self):
        """A path leads to what was mounted on top."""
        for extra in (
            # On the very place,
            '90 32 0:29 /box /sys/fs/cgroup/cpu,cpuacct rw - cgroup '
            'cgroup rw,cpu,cpuacct\n',
            # or on a folder above it, with another one in there.
            '89 31 0:99 / /sys/fs/cgroup rw - tmpfs none rw\n'
            '90 89 0:29 /box /sys/fs/cgroup/cpu,cpuacct rw - cgroup '
            'cgroup rw,cpu,cpuacct\n',
        ):
            self.assertEqual(
                (1, _V1_CPU, '/box'), self.point(_V1 + extra, 'cpu')
            )

    def test_hidden_without_another(self):
        text = _V1 + '89 31 0:99 / /sys/fs/cgroup rw - tmpfs none rw\n'
        self.assertIsNone(self.point(text, 'cpu'))

    def test_in_a_chroot(self):
        """Its own root is no mount; parents are outside of the table."""
        text = (
            '70 69 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n'
            '71 70 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n'
        )
        self.assertEqual(
            (1, '/sys/fs/cgroup/cpu', '/'), self.point(text, 'cpu')
        )

    def test_odd_lines(self):
        self.assertEqual({}, mount_table.choose('\nnonsense\n1 2 3 4\n'))
