# SPDX-License-Identifier: Apache-2.0

"""Options of [ballooning]."""

import copy

from oslo_config import cfg

ballooning_group = cfg.OptGroup(
    'ballooning',
    title='vCPU ballooning',
    help='How vCPUs are taken from instances that lose more by waiting for '
    'each other than they gain by running in parallel. Only from '
    'instances whose flavor says vsched:balloon=auto.',
)

ballooning_opts = [
    cfg.StrOpt(
        'mode',
        default='on',
        choices=[
            ('on', 'vCPUs are taken and given back'),
            ('dry_run', 'events say what would be done'),
            ('off', 'nothing is looked at'),
        ],
        help='Whether to act.',
    ),
    cfg.FloatOpt(
        'wait_share',
        default=0.3,
        min=0.01,
        max=1,
        help='A vCPU is contended when it waits for more than this part of '
        'the time that it is runnable. Two instances that each have '
        'as many vCPUs as there are CPUs show 0.5 and more, an '
        'instance that has the CPUs for itself less than 0.1.',
    ),
    cfg.FloatOpt(
        'yields_per_timeslice',
        default=10.0,
        min=0.1,
        help='It is also contended when KVM tried to yield its CPU more '
        'often than this each time that it ran. Only where KVM tells.',
    ),
    cfg.IntOpt(
        'samples',
        default=3,
        min=1,
        max=60,
        help='An instance is contended when more than half of its vCPUs '
        'are, over so many samples; see interval in [agent].',
    ),
    cfg.FloatOpt(
        'active_cpus',
        default=0.5,
        min=0.01,
        help='An instance that could use fewer CPUs than this takes no part '
        'when CPUs are divided.',
    ),
    cfg.FloatOpt(
        'settle',
        default=2.0,
        min=0,
        max=600,
        help='Seconds after vCPUs were taken before the effect is looked at.',
    ),
    cfg.FloatOpt(
        'trial',
        default=8.0,
        min=1,
        max=3600,
        help='Seconds for which it is looked at; then it is kept or reverted.',
    ),
    cfg.FloatOpt(
        'calm',
        default=10.0,
        min=1,
        max=3600,
        help='Seconds without a need for fewer vCPUs before they are given '
        'back.',
    ),
    cfg.FloatOpt(
        'cooldown',
        default=30.0,
        min=1,
        max=86400,
        help='Seconds after vCPUs were taken or given back before any are '
        'taken from the same instance.',
    ),
    cfg.FloatOpt(
        'backoff',
        default=300.0,
        min=1,
        max=604800,
        help='The same after taking vCPUs did not pay or failed; doubled '
        'each time in a row.',
    ),
    cfg.FloatOpt(
        'backoff_max',
        default=14400.0,
        min=1,
        max=604800,
        help='Longest of these waits, in seconds.',
    ),
    cfg.FloatOpt(
        'progress_gain',
        default=0.05,
        min=-1,
        max=10,
        help="By what part the instance's own progress counter must grow "
        'faster for fewer vCPUs to be kept.',
    ),
    cfg.FloatOpt(
        'run_kept',
        default=0.8,
        min=0,
        max=1,
        help='An instance that gets less than this part of the CPU time '
        'that it had before, though nobody keeps it waiting, loses.',
    ),
    cfg.StrOpt(
        'unknown',
        default='revert',
        choices=[
            ('revert', 'give the vCPUs back'),
            ('keep', 'leave the instance with fewer'),
        ],
        help='What to do when a trial does not tell whether fewer vCPUs '
        'pay: without a progress counter the host cannot tell work '
        'from a loop that waits.',
    ),
    cfg.StrOpt(
        'progress_path',
        default='/run/vsched.progress',
        help='A file in the guest with a number that grows with the work '
        'done, read through the guest agent. Nobody has to have one; '
        'empty: no file is looked for.',
    ),
    cfg.FloatOpt(
        'guest_timeout',
        default=10.0,
        min=1,
        max=120,
        help='Longest time, in seconds, that a guest may take to do what it '
        'is told.',
    ),
    cfg.IntOpt(
        'turn_us',
        default=500,
        min=0,
        max=100000,
        help='While a guest takes vCPUs offline, the threads on the CPUs of '
        'its vCPUs take turns so often, in microseconds; its kernel '
        'has all vCPUs run a few steps together meanwhile. 0 leaves '
        'that to the tick.',
    ),
    cfg.BoolOpt(
        'bind',
        default=True,
        help='Whether the vCPUs that are left are bound to one CPU each.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    conf.register_group(copy.deepcopy(ballooning_group))
    conf.register_opts(ballooning_opts, group=ballooning_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [(ballooning_group, ballooning_opts)]
