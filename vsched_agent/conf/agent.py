# SPDX-License-Identifier: Apache-2.0

"""Options of [agent]."""

import copy
import socket

from oslo_config import cfg

from vsched_lib.metrics import server
from vsched_lib.model import admission

agent_group = cfg.OptGroup(
    'agent', title='Agent', help='The agent of this compute node.'
)

agent_opts = [
    cfg.HostAddressOpt(
        'host',
        default=socket.gethostname(),
        sample_default='<current host name>',
        help='Name of this compute node. Must be the name that nova-compute '
        'uses.',
    ),
    cfg.StrOpt(
        'state_path',
        default='/var/lib/vsched',
        help="Directory of the agent's journal. It must survive restarts of "
        'the agent: the journal has the original settings of threads '
        'and cgroups on the host.',
    ),
    cfg.FloatOpt(
        'interval',
        default=1.0,
        min=0.1,
        max=60,
        help="Seconds between two passes that compare the kernel's state "
        "with the desired reservations and sample the instances' CPU "
        'time. Changes are applied at once, independent of these passes.',
    ),
    cfg.FloatOpt(
        'full_sync_interval',
        default=30.0,
        min=1,
        max=3600,
        help='Seconds between two full scans of the hypervisor, which find '
        'changes that its events missed.',
    ),
    cfg.FloatOpt(
        'report_interval',
        default=5.0,
        min=0.1,
        max=300,
        help='Seconds between two reports that carry usage only. Events and '
        'changes are reported at once.',
    ),
    cfg.IntOpt(
        'outbox_batches',
        default=20_000,
        min=10,
        max=1_000_000,
        help='Maximum number of reports that are kept while the message bus '
        'is unavailable. Beyond it the oldest ones are dropped, and an '
        'event has their number.',
    ),
    cfg.IntOpt(
        'reserve_mcpu',
        default=0,
        min=0,
        help='Part of the bandwidth admitted by the kernel that is not '
        'available to reservations, in milli-CPU, in addition to the '
        'reserve of [enforcement] budget_check_us.',
    ),
    cfg.StrOpt(
        'admission_test',
        default=str(admission.Test.BANDWIDTH),
        choices=[
            (
                str(admission.Test.BANDWIDTH),
                'the admission test of the kernel; tardiness is bounded',
            ),
            (
                str(admission.Test.GFB),
                'no deadline is missed under global EDF; admits fewer',
            ),
        ],
        help='Admission test for the set of reservations on this host.',
    ),
    cfg.StrOpt(
        'on_refusal',
        default='refuse',
        choices=[
            ('refuse', 'the instance keeps its previous state'),
            (
                'degrade',
                'the instance gets a weaker backend, if its flavor '
                'names none, and its state shows that',
            ),
        ],
        help='Action for a reservation that cannot be enforced.',
    ),
    cfg.BoolOpt(
        'restore_on_stop',
        default=False,
        help='Restore the original settings of all threads and cgroups when '
        'the agent is stopped. When false, the kernel keeps enforcing '
        'the reservations while the agent restarts, and "vsched-agent '
        'restore" removes them.',
    ),
    *server.options('the agent'),
    cfg.BoolOpt(
        'metrics_per_instance',
        default=True,
        help='Serve metrics of each instance besides those of the host.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(agent_group))
    conf.register_opts(agent_opts, group=agent_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(agent_group, agent_opts)]
