# SPDX-License-Identifier: Apache-2.0

"""Privileged operations, in helpers with one capability each."""

import types

from oslo_config import cfg

from vsched_agent.privileged.budget_expiry import budgets
from vsched_agent.privileged import cgroup
from vsched_agent.privileged import clocks
from vsched_agent.privileged import network
from vsched_agent.privileged import partitions
from vsched_agent.privileged import preemption
from vsched_agent.privileged import sched
from vsched_agent.privileged import xen

#: The helpers by their names on the command line.
CONTEXTS = types.MappingProxyType(
    {
        context.name: context
        for context in (
            budgets.budgets_pctxt,
            cgroup.cgroup_pctxt,
            clocks.perf_pctxt,
            network.links_pctxt,
            partitions.partitions_pctxt,
            sched.sched_pctxt,
            preemption.turns_pctxt,
            xen.xen_pctxt,
        )
    }
)

#: Those that are not started unless an option enables them, by operators who
#: have enabled their units: partitions of CPUs, and hosts of Xen.
OPTIONAL = frozenset(('partitions', 'xen'))

#: The helpers' configuration sections.
SECTIONS = tuple(context.cfg_section for context in CONTEXTS.values())


def use(conf: cfg.ConfigOpts) -> None:
    """Make the helpers read their options from here.

    :param conf: the service's own; oslo.privsep would read the global one.
    """
    for context in CONTEXTS.values():
        context.use(conf)
