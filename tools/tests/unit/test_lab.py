# SPDX-License-Identifier: Apache-2.0

"""What tools/lab.sh accepts, and what its nodes are started with."""

import pathlib
import subprocess

import fixtures
from oslotest import base

ROOT = pathlib.Path(__file__).resolve().parents[3]
RELEASE = '6.1.0-1-amd64'


class TestOptions(base.BaseTestCase):
    """All of these end before anything is installed or built."""

    def refused(self, *words, folder='/nonexistent'):
        """Return what the command says against its options."""
        done = subprocess.run(
            [str(ROOT / 'tools' / 'lab.sh'), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={'PATH': '/usr/bin:/bin', 'VSCHED_LAB_DIR': folder},
        )
        self.assertEqual((2, ''), (done.returncode, done.stdout))
        return done.stderr

    def test_nodes_are_named(self):
        for words in ((), ('--cold',), ('hyperv',), ('kvm', 'xen')):
            self.assertIn('\nNODE: kvm xen\n', self.refused(*words))

    def test_value_is_missing(self):
        for option in ('--kernel', '--results', '--scheduler'):
            self.assertEqual(option + ' needs a value\n', self.refused(option))

    def test_unknown_scheduler(self):
        self.assertEqual(
            'lab: no scheduler null: rtds credit2 credit\n',
            self.refused('--scheduler', 'null', 'xen'),
        )

    def test_without_a_hypervisor(self):
        for words in (('--scheduler', 'rtds'), ('--steady',)):
            self.assertEqual(
                'lab: node kvm has no hypervisor, which --scheduler and '
                '--steady are for\n',
                self.refused(*words, 'kvm'),
            )

    def test_folder_that_the_hypervisor_cannot_be_given(self):
        for folder in ('/var/my lab', '/var/a,b'):
            self.assertEqual(
                'lab: no space and no comma may be in %s\n' % folder,
                self.refused('xen', folder=folder),
            )


class TestWhyNot(base.BaseTestCase):
    """Why this machine cannot build an image."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.lab = self.folder / 'lab'

    def asked(self, user):
        """Return the exit code of the command, and what it prints.

        :param user: number of the user who seems to ask.
        """
        path = self.folder / 'id'
        path.write_text('#!/bin/sh\necho %d\n' % user)
        path.chmod(0o755)
        # Nobody listens there.
        nowhere = 'http://127.0.0.1:9'
        done = subprocess.run(
            [str(ROOT / 'tools' / 'lab.sh'), '--why-not', 'kvm'],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env={
                'PATH': '%s:/usr/bin:/bin' % self.folder,
                'VSCHED_LAB_DIR': str(self.lab),
                'http_proxy': nowhere,
                'https_proxy': nowhere,
            },
        )
        return done.returncode, done.stdout

    def test_not_root(self):
        self.assertEqual(
            (0, 'building its image needs root\n'), self.asked(1000)
        )

    def test_archive_cannot_be_reached(self):
        code, text = self.asked(0)
        self.assertEqual(0, code)
        self.assertRegex(
            text, '^its image is built from http.*, which cannot be reached$'
        )

    def test_image_is_there(self):
        image = subprocess.run(
            [
                'bash',
                '-euc',
                '. "$1/tools/services.sh"; . "$1/tools/lab/image.sh"\n'
                'VSCHED_LAB_DIR=$2 image_path kvm',
                'lab',
                str(ROOT),
                str(self.lab),
            ],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()
        pathlib.Path(image).mkdir(parents=True)
        (pathlib.Path(image) / 'complete').touch()
        self.assertEqual((1, ''), self.asked(1000))

    def test_nothing_was_built(self):
        self.asked(1000)
        self.assertFalse(self.lab.exists())


class TestMachine(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.image = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def shell(self, *lines):
        """Run lines of shell that know the lab; their words."""
        return subprocess.run(
            [
                'bash',
                '-euc',
                '\n'.join(
                    (
                        'VSCHED_TOOLS=%s' % (ROOT / 'tools'),
                        '. "$VSCHED_TOOLS/lab/machine.sh"',
                        'EMULATOR=(echo 10.0)',
                        *lines,
                    )
                ),
                'lab',
                str(self.image),
                RELEASE,
            ],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.split('\n')[:-1]

    def options(self, *settings):
        """Return the options by their names."""
        words = self.shell(
            *settings,
            'machine_boots "$1" "$2"',
            'printf "%s\\n" "${MACHINE[@]}"',
        )
        return dict(zip(words[::2], words[1::2], strict=True))

    def hypervisor(self):
        (self.image / 'hypervisor').touch()

    def test_node_without_a_hypervisor_boots_its_kernel(self):
        options = self.options()
        self.assertEqual(
            '%s/vmlinuz-%s' % (self.image, RELEASE), options['-kernel']
        )
        self.assertEqual(
            '%s/initrd.img-%s' % (self.image, RELEASE), options['-initrd']
        )
        self.assertIn('console=ttyS0', options['-append'].split())
        self.assertNotIn('-icount', options)

    def test_hypervisor_is_given_kernel_and_initial_ram_disk(self):
        self.hypervisor()
        options = self.options('LAB_SCHEDULER=credit2')
        self.assertEqual('%s/hypervisor' % self.image, options['-kernel'])
        self.assertIn('sched=credit2', options['-append'].split())
        kernel, initrd = options['-initrd'].split(',')
        self.assertEqual(
            ['%s/vmlinuz-%s' % (self.image, RELEASE), 'root=/dev/vda'],
            kernel.split()[:2],
        )
        self.assertIn('console=hvc0', kernel.split())
        self.assertEqual('%s/initrd.img-%s' % (self.image, RELEASE), initrd)

    def test_steady_time(self):
        self.hypervisor()
        options = self.options('LAB_SCHEDULER=rtds', 'LAB_STEADY=-steady')
        self.assertIn('-icount', options)
        self.assertIn('thread=single', options['-accel'].split(','))

    def test_each_way_to_boot_is_saved_by_itself(self):
        found = [
            self.shell(*settings, 'machine_kept "$1" "$2"')[0]
            for settings in (
                (),
                ('LAB_SCHEDULER=rtds',),
                ('LAB_SCHEDULER=credit',),
                ('LAB_SCHEDULER=rtds', 'LAB_STEADY=-steady'),
            )
        ]
        for end, path in zip(
            ('', '-rtds', '-credit', '-rtds-steady'), found, strict=True
        ):
            self.assertRegex(
                path,
                '^%s/ready-%s%s-[0-9a-f]{8}.qcow2$'
                % (self.image, RELEASE, end),
            )

    def test_only_the_same_machine_is_restored(self):
        found = [
            self.shell(*settings, 'machine_kept "$1" "$2"')[0]
            for settings in (
                (),
                ('LAB_CPUS=1',),
                ('LAB_MEMORY_MIB=4096',),
                ('EMULATOR=(echo 10.1)',),
            )
        ]
        self.assertEqual(4, len(set(found)), found)
        self.assertEqual(
            found[:1], self.shell('machine_kept "$1" "$2"'), 'not the same'
        )

    def test_other_machines_are_not_kept(self):
        before = self.image / ('ready-%s-0a1b2c3d.qcow2' % RELEASE)
        scheduled = self.image / ('ready-%s-rtds-0a1b2c3d.qcow2' % RELEASE)
        for path in (before, scheduled, self.image / 'disk.qcow2'):
            path.touch()
        kept = self.shell(
            'machine_run() { :; }',
            'machine_monitor() { :; }',
            'machine_keep "$1" "$1" "$2"',
            'machine_kept "$1" "$2"',
        )
        self.assertEqual(
            sorted([*kept, str(scheduled)]),
            sorted(str(path) for path in self.image.glob('ready-*')),
        )


class TestEmulator(base.BaseTestCase):
    def ensured(self, **environment):
        """Have it got; the exit code, what is said and what is run."""
        nowhere = 'http://127.0.0.1:9'
        self.lab = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        done = subprocess.run(
            [
                'bash',
                '-euc',
                '. "$1/tools/services.sh"\n'
                '. "$1/tools/lab/image.sh"\n'
                '. "$1/tools/lab/emulator.sh"\n'
                'emulator_ensure\n'
                'echo "${EMULATOR[0]}"',
                'lab',
                str(ROOT),
            ],
            capture_output=True,
            text=True,
            env={
                'PATH': '/usr/bin:/bin',
                'VSCHED_LAB_DIR': str(self.lab),
                'http_proxy': nowhere,
                'https_proxy': nowhere,
                **environment,
            },
        )
        return done.returncode, done.stdout, done.stderr

    def test_one_is_named(self):
        code, run, _ = self.ensured(VSCHED_LAB_EMULATOR='/opt/qemu')
        self.assertEqual((0, '/opt/qemu\n'), (code, run))
        self.assertEqual([], list(self.lab.iterdir()))

    def test_archive_cannot_be_reached(self):
        code, run, said = self.ensured()
        self.assertEqual((1, ''), (code, run))
        self.assertIn('QEMU of bookworm-backports was not got', said)
        self.assertFalse((self.lab / 'emulator' / 'complete').exists())

    def test_it_is_there(self):
        here = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (here / 'emulator').mkdir()
        (here / 'emulator' / 'complete').touch()
        code, run, _ = self.ensured(VSCHED_LAB_DIR=str(here))
        self.assertEqual(
            (0, '%s/emulator/usr/bin/qemu-system-x86_64\n' % here), (code, run)
        )


class TestImage(base.BaseTestCase):
    """Its folder is named after what it is built from."""

    def setUp(self):
        super().setUp()
        self.project = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.lab = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in (
            'tools/lab/image.sh',
            'tools/lab/kvm/packages',
            'tools/lab/xen/packages',
            'tools/lab/xen/hypervisor',
            'tools/guest/init',
            'tools/services/venv.sh',
            'setup.cfg',
            'setup.py',
            'pyproject.toml',
            'upper-constraints.txt',
            'vsched_agent/service.py',
        ):
            self.write(name, 'as it was')
        subprocess.run(['git', 'init', '-q', str(self.project)], check=True)

    def write(self, name, text):
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def paths(self):
        return [
            self.bash('image_path "$1"', node).removeprefix('%s/' % self.lab)
            for node in ('kvm', 'xen')
        ]

    def bash(self, line, *words):
        """Run a line of shell that knows the images; its output."""
        return subprocess.run(
            [
                'bash',
                '-euc',
                '. "$1/tools/lab/image.sh"; shift; ' + line,
                'lab',
                str(ROOT),
                *words,
            ],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            env={
                'PATH': '/usr/bin:/bin',
                'VSCHED_ROOT': str(self.project),
                'VSCHED_LAB_DIR': str(self.lab),
            },
        ).stdout.strip()

    def changed(self, name):
        """Return of each kind of node whether a change builds another one."""
        before = self.paths()
        self.write(name, 'changed')
        return [
            old != new for old, new in zip(before, self.paths(), strict=True)
        ]

    def test_a_folder_of_each_kind(self):
        kvm, xen = self.paths()
        self.assertRegex(kvm, '^kvm-[0-9a-f]{16}$')
        self.assertRegex(xen, '^xen-[0-9a-f]{16}$')

    def test_what_all_are_built_from(self):
        for name in (
            'tools/lab/image.sh',
            'tools/guest/init',
            'tools/services/venv.sh',
            'setup.cfg',
            'upper-constraints.txt',
        ):
            self.assertEqual([True, True], self.changed(name), name)

    def test_what_one_is_built_from(self):
        self.assertEqual([True, False], self.changed('tools/lab/kvm/packages'))
        self.assertEqual([False, True], self.changed('tools/lab/xen/packages'))

    def test_the_code_is_put_in_later(self):
        self.assertEqual(
            [False, False], self.changed('vsched_agent/service.py')
        )

    def test_the_machine_is_no_part_of_it(self):
        self.assertEqual([False, False], self.changed('tools/lab/machine.sh'))

    def hypervisors(self):
        """Have the hypervisor built; how often that was done, in this folder.

        What a root file system does is left out.
        """
        root = self.lab / 'root'
        (root / 'var/tmp').mkdir(parents=True, exist_ok=True)
        self.bash(
            'in_root() { echo >>"$1/calls"; echo built >"$1$3"; }\n'
            'hypervisor_ensure "$1" "$2"',
            str(self.project / 'tools/lab/xen'),
            str(root),
        )
        self.assertEqual([], list((root / 'var/tmp').iterdir()))
        return len((root / 'calls').read_text()), len(
            list(self.lab.glob('hypervisor-xen-*'))
        )

    def test_hypervisor_is_built_once(self):
        self.assertEqual((1, 1), self.hypervisors())
        self.write('tools/lab/xen/packages', 'changed')
        self.assertEqual((1, 1), self.hypervisors())
        self.write('tools/lab/xen/hypervisor', 'changed')
        # The former one is gone.
        self.assertEqual((2, 1), self.hypervisors())
