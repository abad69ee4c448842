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

"""Every option of the agent, one module a group."""

from oslo_config import cfg

from vsched_agent.conf import agent
from vsched_agent.conf import ballooning
from vsched_agent.conf import charging
from vsched_agent.conf import enforcement
from vsched_agent.conf import hypervisor
from vsched_agent.conf import placement
from vsched_agent.conf import profiling

_MODULES = (
    agent, ballooning, charging, enforcement, hypervisor, placement,
    profiling)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the agent's options known to one set of options."""
    for module in _MODULES:
        module.register_opts(conf)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Every group and its options, for the generated sample."""
    return [entry for module in _MODULES for entry in module.list_opts()]
