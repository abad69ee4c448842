# SPDX-License-Identifier: Apache-2.0

"""An agent of a simulated host, as a process of its own.

    python -m vsched_standalone.tests.region.simulated_agent \\
        CONFIG DOMAINS CAPACITY_MCPU

The service is the real one, and so are the threads and what the kernel
holds for them. Which domains run is told by a folder, and how much the host
can promise by the command line: several such hosts share one kernel.
"""

from fractions import Fraction
import sys
import threading
from unittest import mock

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import backend

# oslo.service chooses eventlet unless told before its first use.
backend.init_backend(backend.BackendType.THREADING)

from oslo_service import service as oslo_service  # noqa: E402

from vsched_agent import conf as agent_conf  # noqa: E402
from vsched_agent.enforcement import capacity  # noqa: E402
from vsched_agent.host import cpu_list  # noqa: E402
from vsched_agent.hypervisor import base  # noqa: E402
from vsched_agent import service  # noqa: E402
from vsched_agent.tests import simulated  # noqa: E402
from vsched_agent.tests import thread_farm  # noqa: E402
from vsched_lib.model import reservation  # noqa: E402
from vsched_standalone.tests.region import domains  # noqa: E402

_LOOK_S = 0.1


class Told(simulated.SimulatedHypervisor):
    """Its domains are those of a folder.

    :param folder: is looked at ten times a second.
    """

    def __init__(self, folder: domains.Folder) -> None:
        super().__init__(thread_farm.ThreadFarm())
        self._folder = folder
        self._known: dict[str, domains.Running] = {}
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._run, daemon=True)

    def start(self, on_change: base.ChangeCallback) -> None:
        """Look once, then go on looking."""
        super().start(on_change)
        self._look()
        self._watch.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()
        if self._watch.is_alive():
            self._watch.join()
        super().stop()

    def _run(self) -> None:
        while not self._over.wait(_LOOK_S):
            self._look()

    def _look(self) -> None:
        found = self._folder.running()
        for uuid, one in list(self._known.items()):
            if found.get(uuid) != one:
                del self._known[uuid]
                self.remove(uuid)
        for uuid, one in found.items():
            if uuid not in self._known:
                self._known[uuid] = one
                self.add(
                    one.vcpus,
                    extra_specs=one.extra_specs,
                    name=one.name,
                    uuid=uuid,
                    # What the kernel holds is compared with the claims.
                    emulator_threads=0,
                )


class Given(capacity.KernelCapacity):
    """What the host can promise was said.

    :param mcpu: so much, beside the reserve.
    """

    def __init__(self, mcpu: int, reserve_mcpu: int = 0) -> None:
        super().__init__(reserve_mcpu)
        # Up, since what is reported is rounded down.
        self._units = -int(
            -Fraction(
                (mcpu + reserve_mcpu) << reservation.KERNEL_BW_SHIFT,
                reservation.MCPU_PER_CPU,
            )
            // 1
        )

    def measured(self) -> capacity.Measured:
        """What was said, and none of it lost."""
        return capacity.Measured(
            cpu_list.online(), self._units, 0, self._units
        )


class Agent(service.Agent):
    """An agent of such a host.

    :param folder: tells which domains run.
    """

    def __init__(self, conf: cfg.ConfigOpts, folder: domains.Folder) -> None:
        super().__init__(conf)
        self._folder = folder

    def start(self) -> None:
        """Begin to enforce.

        The threads are made here, in the process that serves: helpers touch
        those of its own children only.
        """
        self._hypervisor = self._told = Told(self._folder)
        super().start()

    def stop(self, graceful: bool = True) -> None:
        """Stop, and end the threads."""
        super().stop(graceful)
        self._told.close()


def main(config: str, folder: str, capacity_mcpu: str) -> int:
    """Serve until told to end; the exit code."""
    conf = cfg.ConfigOpts()
    logging.register_options(conf)
    agent_conf.register_opts(conf)
    conf(['--config-file', config], project='vsched', prog='vsched-agent')
    logging.setup(conf, 'vsched-agent')
    with mock.patch.object(
        capacity,
        'KernelCapacity',
        autospec=True,
        side_effect=lambda reserve_mcpu: Given(
            int(capacity_mcpu), reserve_mcpu
        ),
    ):
        launcher = oslo_service.launch(
            conf, Agent(conf, domains.Folder(folder))
        )
        launcher.wait()
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
