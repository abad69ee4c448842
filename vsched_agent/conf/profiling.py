# SPDX-License-Identifier: Apache-2.0

"""Options of [profiling]."""

import copy

from oslo_config import cfg

profiling_group = cfg.OptGroup(
    'profiling',
    title='Profiling',
    help='Measurements of this compute node, and their evaluation.',
)

profiling_opts = [
    cfg.FloatOpt(
        'confidence',
        default=0.8,
        min=0.5,
        max=0.999,
        help='Confidence with which future allocation errors must stay '
        'within the measured ones, before the host guarantees the '
        'max_alloc_error_pct of a flavor. 0.8 needs 161 samples at a '
        'share, 0.95 needs 299. A full run makes 180.',
    ),
    cfg.FloatOpt(
        'max_margin_pct',
        default=25.0,
        min=0,
        max=1000,
        help='Maximum percentage by which the runtime of a reservation is '
        'raised to compensate measured errors. A reservation that needs '
        'more is refused.',
    ),
    cfg.IntOpt(
        'reserved_threads',
        default=5,
        min=1,
        max=256,
        help='Number of vCPU and I/O threads under backend deadline on the '
        'host during the measurement of its error profile. With '
        '[enforcement] budget_check_us, the certificates of the profile '
        'are not valid while the host has more. Set it to the maximum '
        'that the host will have. If the helper that checks budgets is '
        'too slow for that many, the measured errors show it. A run of '
        'the benchmark reserves 10 mcpu for each.',
    ),
    cfg.IntOpt(
        'keep_profiles',
        default=20,
        min=2,
        max=1000,
        help='Number of profiles of each source that are kept in state_path.',
    ),
    cfg.IntOpt(
        'live_vcpus',
        default=8,
        min=0,
        max=256,
        help='Number of vCPUs with a reservation whose context switches are '
        'recorded at the same time to sample allocation errors in '
        'production. The selection changes after twenty passes. Each '
        'takes 36 KiB of memory. 0 disables the samples.',
    ),
    cfg.FloatOpt(
        'live_interval',
        default=3600.0,
        min=10,
        max=86_400,
        help='Seconds between two profiles of samples in production.',
    ),
    cfg.StrOpt(
        'guest_kernel',
        default='/var/cache/vsched/guest/vmlinux',
        help='Kernel of the calibration VM, built by tools/guest/build.sh.',
    ),
    cfg.StrOpt(
        'guest_initrd',
        default='/var/cache/vsched/guest/initramfs.cpio',
        help='Initial RAM file system of the calibration VM. It must burn '
        "CPU time with vsched.load=burn on the kernel's command line, "
        'and contain /bin/vsched-load.',
    ),
    cfg.StrOpt(
        'guest_virt_type',
        default='auto',
        choices=[
            ('auto', 'kvm if the host can run the VM with it, else qemu'),
            ('kvm', 'the type of instances'),
            ('qemu', 'emulation'),
        ],
        help='Virtualization type of the calibration VM, which measures '
        'overhead profiles, and error profiles with --in-guest.',
    ),
    cfg.StrOpt(
        'disk_folder',
        help='Directory of the disk of the calibration VM, 64 MiB. It should '
        'be on the storage that instances use, and QEMU must be able to '
        'open files there. Defaults to the directory profiling in '
        'state_path.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(profiling_group))
    conf.register_opts(profiling_opts, group=profiling_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(profiling_group, profiling_opts)]
