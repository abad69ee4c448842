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

"""How a privileged helper is started."""

from collections.abc import Iterable
import contextlib
import os
import shlex
import sys
import threading
import typing as ty

from oslo_privsep import priv_context


class Context(priv_context.PrivContext):
    """A privsep context that needs no configuration.

    The helper is this very interpreter, started as it is by root, by sudo
    from anyone else. ``helper_command`` in the context's section overrides
    both.

    :param name: of the context object, below ``module``.
    :param module: where it lives.
    :param section: of the configuration.
    :param capabilities: what the helper keeps of root's power.
    """

    def __init__(self, name: str, module: str, section: str,
                 capabilities: Iterable[int]) -> None:
        super().__init__(
            'vsched_agent.privileged', cfg_section=section,
            pypath='%s.%s' % (module, name), capabilities=capabilities)
        self._given: ty.Any = None
        self._starting = threading.Lock()

    def start(self, method: priv_context.Method =
              priv_context.Method.ROOTWRAP) -> None:
        """Start the helper, unless another thread just did."""
        with self._starting:
            # The library would warn of that.
            if self.channel is None:
                super().start(method)

    def use(self, conf: ty.Any) -> None:
        """Take options from here rather than from the global ones."""
        conf.register_opts(priv_context.OPTS, group=self.cfg_section)
        self._given = conf

    @property
    def conf(self) -> ty.Any:
        """The context's section, with the capabilities it declares."""
        if self._given is None:
            return super().conf
        return self._given[self.cfg_section]

    def helper_command(self, sockpath: str) -> list[str]:
        """What starts the helper.

        :param sockpath: where it is to report.
        """
        if self.conf.helper_command:
            command = shlex.split(self.conf.helper_command)
        else:
            command = [] if os.geteuid() == 0 else ['sudo', '-n']
            command += [sys.executable, '-m', 'oslo_privsep.daemon']
        for option in ('config_file', 'config_dir'):
            for path in (getattr(self._given, option, None) or ()):
                command += ['--' + option.replace('_', '-'), path]
        return [*command, '--privsep_context', str(self.pypath),
                '--privsep_sock_path', sockpath]


@contextlib.contextmanager
def in_process(*contexts: priv_context.PrivContext) -> ty.Iterator[None]:
    """Run entrypoints in the caller's process, for tests.

    :param contexts: whose entrypoints.
    """
    before = [(context, context.client_mode) for context in contexts]
    for context in contexts:
        context.set_client_mode(False)
    try:
        yield
    finally:
        for context, mode in before:
            context.set_client_mode(mode)
