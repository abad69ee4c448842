# SPDX-License-Identifier: Apache-2.0

"""A deployment whose parts are killed, and what starts them again.

A broker, a database and a libvirtd of its own, two reserved VMs and
neighbours that burn every CPU.
"""

import contextlib
import os
import signal
import threading
import time
import typing as ty

import fixtures

from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.guest import vm
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import extra_specs
from vsched_lib.model import reservation
from vsched_lib.tests import requirements
from vsched_standalone.tests import deployment
from vsched_standalone.tests import outages
from vsched_standalone.tests import private_services
from vsched_standalone.tests.region import hypervisor
from vsched_standalone.tests import releases

#: The reservation that nobody changes.
CONSTANT = reservation.Reservation(12_000, 20_000)
#: What operators change the other one between.
CHANGED = (
    reservation.Reservation(2_000, 20_000),
    reservation.Reservation(4_000, 20_000),
)
NEIGHBOURS = 2
#: Whichever of the database servers.
Database = type[private_services.Postgres] | type[private_services.MariaDB]
COMPONENTS = ('agent', 'collector', 'api', 'broker', 'database', 'libvirtd')

#: How soon the supervisor starts a part again; systemd's RestartSec of the
#: shipped units.
RESTART_S = 1.0


def require(test: ty.Any) -> None:
    """End a test of a scene where there can be none."""
    hypervisor.require(test)
    private_services.require_installed(
        test,
        rabbitmq='/usr/lib/rabbitmq',
        postgresql='/usr/lib/postgresql',
        mariadb='/usr/sbin/mariadbd',
    )
    if not private_services.answers(4369):
        requirements.require(test, 'rabbitmq', 'epmd does not answer')


class Scene(fixtures.Fixture):
    """What the drill kills.

    :param database: the class of the private database server.
    :param release: whose programs run; this tree's if None.
    """

    def __init__(
        self, database: Database, release: releases.Release | None = None
    ) -> None:
        self._kind = database
        self._release = release

    def _setUp(self) -> None:
        self.broker = self.useFixture(private_services.Rabbit())
        self.database = self.useFixture(self._kind())
        self.libvirtd = self.useFixture(hypervisor.Libvirtd('vsched-drill'))
        self.libvirtd.start()
        # Where libvirtd is dead in the end, it cannot stop its guests.
        self.addCleanup(self._end_guests)
        folder = self.useFixture(fixtures.TempDir()).path
        guests = [
            self._guest(folder, name, spec)
            for name, spec in (
                ('constant', CONSTANT),
                ('changed', CHANGED[0]),
                *(
                    ('neighbour-%d' % number, None)
                    for number in range(NEIGHBOURS)
                ),
            )
        ]
        for one in guests:
            self.addCleanup(one.stop)
        agent_guests.start_in_turn(guests)
        self.uuid, self.changed_uuid = (one.uuid for one in guests[:2])
        self.tids = {one.uuid: self._vcpu_tid(one.spec) for one in guests}
        self.services = self.useFixture(
            deployment.Deployment(
                self.broker.transport_url,
                self.database.connection,
                options={
                    'hypervisor': {
                        'uri': self.libvirtd.uri,
                        'run_dir': self.libvirtd.run_dir,
                    }
                },
                release=self._release,
            )
        )
        for uuid, wanted in (
            (self.uuid, CONSTANT),
            (self.changed_uuid, CHANGED[0]),
        ):
            self.services.await_state(
                uuid,
                'applied',
                backend='deadline',
                runtime_us=wanted.runtime_us,
            )

    def _end_guests(self) -> None:
        for pid in self.libvirtd.guests():
            with contextlib.suppress(OSError):
                with open('/proc/%d/comm' % pid, encoding='ascii') as file:
                    if file.read().startswith('qemu'):
                        os.kill(pid, signal.SIGKILL)

    def _guest(
        self, folder: str, name: str, wanted: reservation.Reservation | None
    ) -> vm.RunningDomain:
        name = 'vsched-drill-%s-%d' % (name, os.getpid())
        spec = domain_xml.DomainSpec(
            name=name,
            kernel=os.path.join(outages.GUEST_DIR, 'vmlinux'),
            initrd=os.path.join(outages.GUEST_DIR, 'initramfs.cpio'),
            cmdline=domain_xml.cmdline('vsched.load=burn'),
            serial_file=os.path.join(folder, name + '.console'),
            extra_specs=extra_specs.render(wanted) if wanted else {},
        )
        # It must not end with the libvirtd that is killed.
        return vm.RunningDomain(
            spec, self.libvirtd.uri, ready_timeout_s=300, outlive=True
        )

    def _vcpu_tid(self, spec: domain_xml.DomainSpec) -> int:
        with open(
            os.path.join(self.libvirtd.run_dir, spec.name + '.pid'),
            encoding='ascii',
        ) as file:
            return outages.vcpu_tid(int(file.read()))

    def alive(self, component: str) -> bool:
        """Whether the process of a part runs."""
        if component == 'broker':
            return self.broker.alive
        if component == 'database':
            return self.database.alive
        if component == 'libvirtd':
            return self.libvirtd.alive
        return self.services.alive(component)

    def start(self, component: str) -> None:
        """Start a part that does not run."""
        if component == 'broker':
            self.broker.start()
        elif component == 'database':
            self.database.start()
        elif component == 'libvirtd':
            self.libvirtd.launch()
        else:
            self.services.start(component)

    def kill(self, component: str) -> None:
        """End a part with SIGKILL, whatever it does at the moment."""
        if component == 'broker':
            self.broker.kill()
        elif component == 'database':
            self.database.kill()
        elif component == 'libvirtd':
            # Its QEMU processes are in sessions of their own.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.libvirtd.pid, signal.SIGKILL)
        else:
            self.services.kill(component)

    @property
    def all_alive(self) -> bool:
        """Whether every part runs."""
        return all(map(self.alive, COMPONENTS))


class Background:
    """Something that goes on in a thread until the block is left.

    Leaving the block raises what has ended the thread before.
    """

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._problem: Exception | None = None
        self._thread = threading.Thread(target=self._guarded, daemon=True)

    def __enter__(self) -> ty.Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, *problem: object
    ) -> None:
        self._stopping.set()
        self._thread.join()
        if self._problem is not None and kind is None:
            raise self._problem

    def _guarded(self) -> None:
        try:
            self._run()
        except Exception as problem:
            self._problem = problem

    def _run(self) -> None:
        """Do it until ``_stopping`` is set."""
        raise NotImplementedError


class Supervisor(Background):
    """Starts parts that have died, each after a pause.

    As systemd does with ``Restart=always``. Nothing else helps a part to
    come back.
    """

    def __init__(self, scene: Scene) -> None:
        super().__init__()
        self._scene = scene
        #: Serialises kill and start, so that a part dies or starts, not both.
        self.lock = threading.RLock()

    def _run(self) -> None:
        died: dict[str, float] = {}
        while not self._stopping.wait(0.1):
            for component in COMPONENTS:
                if self._scene.alive(component):
                    died.pop(component, None)
                elif (
                    time.monotonic()
                    > died.setdefault(component, time.monotonic()) + RESTART_S
                ):
                    # What does not start is tried again, as systemd does.
                    with self.lock, contextlib.suppress(RuntimeError):
                        self._scene.start(component)
