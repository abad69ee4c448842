# SPDX-License-Identifier: Apache-2.0

"""Options of [ballooning]."""

import copy

from oslo_config import cfg

ballooning_group = cfg.OptGroup(
    'ballooning',
    title='vCPU ballooning',
    help='vCPU ballooning takes vCPUs offline in instances that lose more '
    'time waiting for their other vCPUs than they gain from '
    'parallelism. It applies to instances whose flavor has '
    'vsched:balloon=auto.',
)

ballooning_opts = [
    cfg.StrOpt(
        'mode',
        default='on',
        choices=[
            ('on', 'vCPUs are taken offline and brought back online'),
            ('dry_run', 'events list the changes that would be made'),
            ('off', 'nothing is sampled or changed'),
        ],
        help='Whether ballooning is active.',
    ),
    cfg.FloatOpt(
        'wait_share',
        default=0.3,
        min=0.01,
        max=1,
        help='A vCPU is contended when it waits for more than this fraction '
        'of the time in which it is runnable. Two instances that each '
        'have as many vCPUs as there are CPUs reach 0.5 and more. An '
        'instance alone on the CPUs stays below 0.1.',
    ),
    cfg.FloatOpt(
        'yields_per_timeslice',
        default=10.0,
        min=0.1,
        help='A vCPU is also contended when it asks KVM for more directed '
        'yields than this per time slice of the vCPU. A Linux guest asks '
        'when it has interrupted several of its vCPUs and one of them '
        'does not run, if its CPU model has kvm-pv-sched-yield '
        '(host-passthrough has it). Pause-loop exits are not counted by '
        'KVM. Used only where KVM exports these counters.',
    ),
    cfg.IntOpt(
        'samples',
        default=3,
        min=1,
        max=60,
        help='Number of consecutive samples in which more than half of an '
        "instance's vCPUs must be contended for the instance to count "
        'as contended. [agent] interval sets the time between samples.',
    ),
    cfg.FloatOpt(
        'active_cpus',
        default=0.5,
        min=0.01,
        help='An instance that could use fewer CPUs than this is ignored when '
        'CPUs are divided among instances.',
    ),
    cfg.FloatOpt(
        'settle',
        default=2.0,
        min=0,
        max=600,
        help='Seconds between taking vCPUs offline and measuring the effect.',
    ),
    cfg.FloatOpt(
        'trial',
        default=8.0,
        min=1,
        max=3600,
        help='Seconds for which the effect is measured. Then the change is '
        'kept or reverted.',
    ),
    cfg.FloatOpt(
        'calm',
        default=10.0,
        min=1,
        max=3600,
        help='Seconds without contention before vCPUs are brought back '
        'online.',
    ),
    cfg.FloatOpt(
        'cooldown',
        default=30.0,
        min=1,
        max=86400,
        help='Seconds after a change before vCPUs of the same instance are '
        'taken offline again.',
    ),
    cfg.FloatOpt(
        'backoff',
        default=300.0,
        min=1,
        max=604800,
        help='Like cooldown, after a trial that failed or was reverted. '
        'Doubled after each further one in a row.',
    ),
    cfg.FloatOpt(
        'backoff_max',
        default=14400.0,
        min=1,
        max=604800,
        help='Upper limit of backoff after all doublings, in seconds.',
    ),
    cfg.FloatOpt(
        'progress_gain',
        default=0.05,
        min=-1,
        max=10,
        help="Minimum relative increase of the rate of the instance's "
        'progress counter for a trial to be kept.',
    ),
    cfg.FloatOpt(
        'run_kept',
        default=0.8,
        min=0,
        max=1,
        help='A trial is reverted when the instance gets less than this '
        'fraction of its previous CPU time, although its vCPUs do not '
        'wait for CPUs.',
    ),
    cfg.StrOpt(
        'unknown',
        default='revert',
        choices=[
            ('revert', 'bring the vCPUs back online'),
            ('keep', 'keep the vCPUs offline'),
        ],
        help='Action after a trial without a clear result. Without a '
        'progress counter the host cannot distinguish work from busy '
        'waiting.',
    ),
    cfg.StrOpt(
        'progress_path',
        default='/run/vsched.progress',
        help='Path of an optional file in the guest with a number that grows '
        'with the completed work. It is read through the guest agent. '
        'Empty disables the read.',
    ),
    cfg.FloatOpt(
        'guest_timeout',
        default=10.0,
        min=1,
        max=120,
        help='Maximum time, in seconds, for a guest to execute a command.',
    ),
    cfg.IntOpt(
        'turn_us',
        default=500,
        min=0,
        max=100000,
        help='Interval of forced preemption, in microseconds. While a guest '
        'takes vCPUs offline, its kernel runs several steps that need '
        'all vCPUs at the same time. Threads on the CPUs of its vCPUs '
        'are preempted at this interval meanwhile. 0 leaves preemption '
        "to the kernel's tick.",
    ),
    cfg.BoolOpt(
        'bind',
        default=True,
        help='Whether each remaining online vCPU is pinned to one CPU.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(ballooning_group))
    conf.register_opts(ballooning_opts, group=ballooning_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(ballooning_group, ballooning_opts)]
