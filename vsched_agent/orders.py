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

"""The command that carries out an order, with this agent's own options."""

from collections.abc import Sequence
import configparser
import os
import sys
import tempfile
import typing as ty

from oslo_config import cfg

from vsched_agent import conf as agent_conf
from vsched_agent.conf import placement as placement_conf
from vsched_agent import privileged
from vsched_agent import profiles
from vsched_lib.contract import messages

_RUNS = {messages.JobKind.PROFILE_ERROR: 'error',
         messages.JobKind.PROFILE_OVERHEAD: 'overhead'}
_FLAGS = ('in_guest', 'quick')
_LISTS = ('shares_pct', 'backends', 'periods_us')
_NUMBERS = ('seconds', 'contend')
_OPTIONS = {'shares_pct': '--shares'}


def command(conf: cfg.ConfigOpts) -> tuple[str, ...]:
    """The words that start a run on this host.

    What this agent was told, by files or otherwise, is written down for the
    run, which is a process of its own.

    :param conf: the agent's options.
    """
    folder = profiles.folder(conf)
    os.makedirs(folder, mode=0o750, exist_ok=True)
    handle, path = tempfile.mkstemp(dir=folder, suffix='.new')
    target = os.path.join(folder, 'run.conf')
    with open(handle, 'w', encoding='utf-8') as file:
        _effective(conf).write(file)
    os.rename(path, target)
    return (sys.executable, '-m', 'vsched_agent.cmd.agent',
            '--config-file', target, 'profile')


def arguments(order: messages.JobOrder) -> Sequence[str]:
    """An order's parameters as words.

    :raises ValueError: for an order that no run answers.
    """
    words = [_RUNS[order.kind], '--json', '--watch-input', '--run',
             order.uuid]
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


def _effective(conf: cfg.ConfigOpts) -> configparser.RawConfigParser:
    found = configparser.RawConfigParser()
    groups = [(group.name, [opt.dest for opt in options])
              for group, options in agent_conf.list_opts()
              # A run has no business there, and needs no password.
              if group.name != placement_conf.GROUP]
    groups += [(section, ['helper_command'])
               for section in privileged.SECTIONS if section in conf]
    for section, names in groups:
        found.add_section(section)
        for name in names:
            value: ty.Any = conf[section][name]
            if isinstance(value, (list, tuple)):
                value = ','.join(map(str, value))
            if value is not None:
                # oslo.config would take a $ for a reference.
                found.set(section, name, str(value).replace('$', '$$'))
    return found
