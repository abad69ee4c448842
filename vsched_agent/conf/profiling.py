# SPDX-License-Identifier: Apache-2.0

"""Options of the measurements that this host makes of itself."""

import copy

from oslo_config import cfg

profiling_group = cfg.OptGroup(
    'profiling',
    title='Profiling',
    help='How this compute node measures itself, and what it concludes.',
)

profiling_opts = [
    cfg.FloatOpt(
        'confidence',
        default=0.8,
        min=0.5,
        max=0.999,
        help='How sure the host must be that the errors to come keep within '
        "those it has measured, before it promises a flavor's "
        'max_alloc_error_pct. 0.8 takes 161 samples at a share, 0.95 '
        'takes 299; a full run makes 180.',
    ),
    cfg.FloatOpt(
        'max_margin_pct',
        default=25.0,
        min=0,
        max=1000,
        help='The largest part by which the runtime of a reservation is '
        'raised to make up for measured errors, in percent. One that '
        'would need more is refused.',
    ),
    cfg.IntOpt(
        'reserved_threads',
        default=5,
        min=1,
        max=256,
        help='vCPU and I/O threads of the host under backend deadline that '
        'its error profile is measured with. With [enforcement] '
        'budget_check_us, the certificates of the profile are withdrawn '
        'while the host has more. Set it to the most that the host is '
        'to hold; the helper that looks at budgets may be too slow for '
        'many, and the measured errors say so. A run of the benchmark '
        'reserves 10 mcpu for each.',
    ),
    cfg.IntOpt(
        'keep_profiles',
        default=20,
        min=2,
        max=1000,
        help='Profiles of each source that are kept in state_path.',
    ),
    cfg.IntOpt(
        'live_vcpus',
        default=8,
        min=0,
        max=256,
        help='vCPUs under a reservation whose switches are watched at the '
        'same time for samples of the error in production; after twenty '
        'passes come the next ones. Each takes 36 KiB of memory. 0 '
        'takes none.',
    ),
    cfg.FloatOpt(
        'live_interval',
        default=3600.0,
        min=10,
        max=86_400,
        help='Seconds between two profiles made of samples in production.',
    ),
    cfg.StrOpt(
        'guest_kernel',
        default='/var/cache/vsched/guest/vmlinux',
        help='Kernel of the calibration VM, which tools/guest/build.sh makes.',
    ),
    cfg.StrOpt(
        'guest_initrd',
        default='/var/cache/vsched/guest/initramfs.cpio',
        help='Its initial RAM file system; it burns the CPU when its kernel '
        'is told vsched.load=burn, and has /bin/vsched-load.',
    ),
    cfg.StrOpt(
        'guest_virt_type',
        default='auto',
        choices=[
            ('auto', 'kvm where it runs the guest, else qemu'),
            ('kvm', 'as instances are run'),
            ('qemu', 'emulation'),
        ],
        help='What runs the calibration VM, with which overhead profiles '
        'are made, and error profiles with --in-guest.',
    ),
    cfg.StrOpt(
        'disk_folder',
        help='Where the disk of that VM is put, 64 MiB. It should be on the '
        'storage that instances use, and QEMU must be able to open '
        'files there. Without it, the folder profiling in state_path.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    conf.register_group(copy.deepcopy(profiling_group))
    conf.register_opts(profiling_opts, group=profiling_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [(profiling_group, profiling_opts)]
