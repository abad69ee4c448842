# SPDX-License-Identifier: Apache-2.0

"""Start a privileged helper."""

from collections.abc import Callable
from collections.abc import Iterable
import os
import shlex
import threading
import typing as ty

from oslo_config import cfg
from oslo_privsep import priv_context

from vsched_agent.privileged import channel
from vsched_agent.privileged import isolated

#: Where a service manager listens for each helper, by its name.
SOCKET = '/run/vsched-helpers/%s.sock'

_HELPER = 'vsched_agent.privileged.helper'

P = ty.ParamSpec('P')
R = ty.TypeVar('R')


def _options(name: str) -> list[cfg.Opt]:
    return [
        cfg.StrOpt(
            'helper_command',
            help='Command that starts the helper, in place of the one that '
            'root runs itself and any other user runs by "sudo -n". '
            'The name of the helper is appended. Standard input is the '
            'socket that the helper serves.',
        ),
        cfg.StrOpt(
            'helper_socket',
            default=SOCKET % name,
            help='Unix socket at which a service manager starts the helper. '
            'An agent that is not root connects to it where it exists, '
            'and starts no process then.',
        ),
        *(
            option
            for option in priv_context.OPTS
            if option.name in ('logger_name', 'log_daemon_traceback')
        ),
    ]


class Context(priv_context.PrivContext):
    """A privsep context that needs no configuration.

    The helper runs in the same interpreter, isolated: behind a service
    manager's socket where there is one, else started directly by root, by sudo
    by other users. ``helper_command`` in the context's section overrides both.

    :param name: of the context object, below ``module``.
    :param module: its module.
    :param section: of the configuration.
    :param capabilities: those that the helper keeps.
    """

    def __init__(
        self, name: str, module: str, section: str, capabilities: Iterable[int]
    ) -> None:
        #: The capabilities that it keeps, as numbered by oslo.privsep.
        self.kept = tuple(capabilities)
        super().__init__(
            'vsched_agent.privileged',
            cfg_section=section,
            pypath='%s.%s' % (module, name),
            capabilities=list(self.kept),
        )
        #: The helper's name on its command line.
        self.name = name.removesuffix('_pctxt')
        self._given: ty.Any = None
        self._starting = threading.Lock()

    def entrypoint(  # type: ignore[override]
        self, func: Callable[P, R]
    ) -> Callable[P, R]:
        """Make ``func`` an entrypoint, and keep its types for callers.

        :param func: runs in the helper.
        :returns: what sends a call to the helper.
        """
        return super().entrypoint(func)

    def start(
        self, method: priv_context.Method = priv_context.Method.ROOTWRAP
    ) -> None:
        """Start the helper, unless another thread just did.

        :param method: ignored.
        :raises daemon.FailedToDropPrivileges: when it does not start.
        """
        with self._starting:
            if self.channel is None:
                path = self.helper_socket()
                self.channel = (
                    channel.connect(self, path)
                    if path
                    else channel.spawn(self, self.command())
                )

    def use(self, conf: ty.Any) -> None:
        """Read options from here instead of the global ones."""
        conf.register_opts(_options(self.name), group=self.cfg_section)
        self._given = conf

    @property
    def conf(self) -> ty.Any:
        """Return the context's configuration section."""
        if self._given is None:
            return super().conf
        return self._given[self.cfg_section]

    def helper_socket(self) -> str | None:
        """Return the service manager's socket for this helper, if used."""
        if self.conf.helper_command or os.geteuid() == 0:
            return None
        path = str(getattr(self.conf, 'helper_socket', SOCKET % self.name))
        return path if os.path.exists(path) else None

    def command(self) -> tuple[str, ...]:
        """Return the command that starts the helper, which is constant.

        ``etc/sudoers.d/vsched-agent`` permits only these command lines.
        """
        if self.conf.helper_command:
            return (*shlex.split(self.conf.helper_command), self.name)
        words = isolated.command('-W', 'ignore', '-m', _HELPER, self.name)
        return words if os.geteuid() == 0 else ('sudo', '-n', *words)
