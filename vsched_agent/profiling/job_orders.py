# SPDX-License-Identifier: Apache-2.0

"""The command that carries out an order, with this agent's own options."""

from collections.abc import Sequence
import os

from oslo_config import cfg

from vsched_agent.privileged import isolated
from vsched_lib.contract import messages

_RUNS = {
    messages.JobKind.PROFILE_ERROR: 'error',
    messages.JobKind.PROFILE_OVERHEAD: 'overhead',
}
_FLAGS = ('in_guest', 'quick')
_LISTS = ('shares_pct', 'backends', 'periods_us')
_NUMBERS = ('seconds', 'contend')
_OPTIONS = {'shares_pct': '--shares'}


def command(conf: cfg.ConfigOpts) -> tuple[str, ...]:
    """Return the words that start a run on this host.

    The run is a process of its own and reads the configuration files that
    this agent was started with.

    :param conf: the agent's options.
    """
    # The run is started in another folder.
    files = [
        word
        for option, paths in (
            ('--config-file', conf.config_file),
            ('--config-dir', conf.config_dir),
        )
        for path in paths or ()
        for word in (option, os.path.abspath(path))
    ]
    return isolated.command('-m', 'vsched_agent.cmd.agent', *files, 'profile')


def arguments(order: messages.JobOrder) -> Sequence[str]:
    """An order's parameters as words.

    :raises ValueError: for an order that no run answers.
    """
    words = [_RUNS[order.kind], '--json', '--watch-input', '--run', order.uuid]
    for name, value in sorted(order.parameters.items()):
        option = _OPTIONS.get(name, '--' + name.replace('_', '-'))
        if name in _FLAGS:
            words += [option] if value else []
        elif name in _LISTS:
            words += [option, ','.join('%s' % one for one in value)]
        elif name in _NUMBERS:
            words += [option, '%d' % value]
        else:
            raise ValueError('a run has no parameter %s' % name)
    return words
