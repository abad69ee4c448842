# SPDX-License-Identifier: Apache-2.0

"""Options of the agent, one module for each group."""

from oslo_config import cfg

from vsched_agent.conf import agent
from vsched_agent.conf import ballooning
from vsched_agent.conf import bus
from vsched_agent.conf import charging
from vsched_agent.conf import communication
from vsched_agent.conf import enforcement
from vsched_agent.conf import hypervisor
from vsched_agent.conf import placement
from vsched_agent.conf import profiling

_MODULES = (
    agent,
    ballooning,
    bus,
    charging,
    communication,
    enforcement,
    hypervisor,
    placement,
    profiling,
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the agent's options."""
    for module in _MODULES:
        module.register_opts(conf)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the groups with their options, for oslo-config-generator."""
    return [entry for module in _MODULES for entry in module.list_opts()]
