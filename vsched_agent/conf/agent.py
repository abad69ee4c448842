# SPDX-License-Identifier: Apache-2.0

"""Options of the agent itself."""

import copy
import socket

from oslo_config import cfg

from vsched_lib.model import admission

agent_group = cfg.OptGroup(
    'agent', title='Agent', help='How the agent of this compute node behaves.'
)

agent_opts = [
    cfg.HostAddressOpt(
        'host',
        default=socket.gethostname(),
        sample_default='<current host name>',
        help='Name of this compute node. Use what nova-compute uses.',
    ),
    cfg.StrOpt(
        'state_path',
        default='/var/lib/vsched',
        help="Folder of the agent's journal. It must survive a restart of "
        'the agent: what vsched found on the host is remembered '
        'there.',
    ),
    cfg.FloatOpt(
        'interval',
        default=1.0,
        min=0.1,
        max=60,
        help='Seconds between two passes that compare the kernel with the '
        "plan and read the instances' CPU time. Changes are acted "
        'on at once and do not wait for a pass.',
    ),
    cfg.FloatOpt(
        'full_sync_interval',
        default=30.0,
        min=1,
        max=3600,
        help='Seconds between two full looks at the hypervisor, which find '
        'what its events may have missed.',
    ),
    cfg.FloatOpt(
        'report_interval',
        default=5.0,
        min=0.1,
        max=300,
        help='Seconds between two reports when nothing has happened but '
        'usage. Events and changes are reported at once.',
    ),
    cfg.IntOpt(
        'outbox_batches',
        default=20_000,
        min=10,
        max=1_000_000,
        help='Reports kept while the bus is away. Above it the oldest are '
        'dropped, and an event says how many.',
    ),
    cfg.IntOpt(
        'reserve_mcpu',
        default=0,
        min=0,
        help='Milli-CPU of what the kernel admits that reservations leave '
        'to the host, besides what [enforcement] budget_check_us '
        'takes.',
    ),
    cfg.StrOpt(
        'admission_test',
        default=str(admission.Test.BANDWIDTH),
        choices=[
            (
                str(admission.Test.BANDWIDTH),
                'what the kernel itself admits; lateness is bounded',
            ),
            (
                str(admission.Test.GFB),
                'no deadline is missed under global EDF; admits less',
            ),
        ],
        help='Which set of reservations fits on this host.',
    ),
    cfg.StrOpt(
        'on_refusal',
        default='refuse',
        choices=[
            ('refuse', 'the instance keeps what it had'),
            (
                'degrade',
                'the instance gets a weaker backend, if its flavor '
                'names none, and its state says so',
            ),
        ],
        help='What happens to a reservation that can not be held.',
    ),
    cfg.BoolOpt(
        'restore_on_stop',
        default=False,
        help='Put every thread and cgroup back as found when the agent is '
        'told to stop. Without it the kernel keeps the promises while '
        'the agent restarts, and "vsched-agent restore" undoes them.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    conf.register_group(copy.deepcopy(agent_group))
    conf.register_opts(agent_opts, group=agent_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [(agent_group, agent_opts)]
