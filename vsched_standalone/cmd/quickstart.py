# SPDX-License-Identifier: Apache-2.0

"""The quick start: demonstrate a reservation on real VMs, in a minute.

Boots a VM with a reservation and neighbours that burn every CPU, runs all of
vsched in this process, and shows the CPU time of each VM from the REST API.
"""

import argparse
from collections.abc import Sequence
import contextlib
import dataclasses
import json
import os
import platform
import signal
import sys
import tempfile
import threading
import time
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import backend

# oslo.service selects eventlet unless another backend is set before.
backend.init_backend(backend.BackendType.THREADING)

from vsched_agent.profiling.guest import domain_xml  # noqa: E402
from vsched_agent.profiling.guest import vm  # noqa: E402
from vsched_lib.contract import extra_specs  # noqa: E402
from vsched_lib.model import reservation  # noqa: E402
from vsched_standalone import conf as standalone_conf  # noqa: E402
from vsched_standalone.quickstart import client  # noqa: E402
from vsched_standalone.quickstart import demonstration  # noqa: E402
from vsched_standalone.quickstart import table  # noqa: E402
from vsched_standalone import service  # noqa: E402

#: Burning VMs for each CPU of the host: enough that a VM without a reservation
#: gets well below what the other one reserves.
NEIGHBOURS_PER_CPU = 2


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='quickstart',
        description='Demonstrate a CPU-time reservation on real VMs.',
    )
    parser.add_argument(
        '--guest-dir',
        required=True,
        help="directory of the guest's vmlinux and initramfs.cpio",
    )
    parser.add_argument(
        '--virt-type',
        choices=('kvm', 'qemu'),
        default='qemu',
        help='virtualization type of the guests; default qemu, which emulates',
    )
    parser.add_argument(
        '--uri', default='qemu:///system', help='URI of libvirt'
    )
    parser.add_argument(
        '--seconds',
        type=_seconds,
        default=60,
        help='duration of all measurements in seconds; default 60',
    )
    parser.add_argument(
        '--port',
        type=int,
        default=0,
        help='port of the REST API; default any free one',
    )
    parser.add_argument('--json', metavar='FILE', help='file for the summary')
    parser.add_argument(
        '--keep',
        action='store_true',
        help='keep everything running until Ctrl-C',
    )
    return parser.parse_args(argv)


def _seconds(text: str) -> int:
    value = int(text)
    if not 12 <= value <= 86_400:
        raise argparse.ArgumentTypeError(
            '%d is not accepted; accepted: 12 to 86400' % value
        )
    return value


def _specs(
    options: argparse.Namespace, folder: str
) -> list[domain_xml.DomainSpec]:
    promise = reservation.Reservation(
        demonstration.PHASES[0].runtime_us, demonstration.PERIOD_US
    )
    names = ['vsched-promised'] + [
        'vsched-neighbour-%d' % number
        for number in range(1, 1 + NEIGHBOURS_PER_CPU * (os.cpu_count() or 1))
    ]
    return [
        domain_xml.DomainSpec(
            name=name,
            kernel=os.path.join(options.guest_dir, 'vmlinux'),
            initrd=os.path.join(options.guest_dir, 'initramfs.cpio'),
            cmdline=domain_xml.cmdline('vsched.load=burn'),
            virt_type=options.virt_type,
            serial_file=os.path.join(folder, name + '.console'),
            extra_specs=extra_specs.render(promise) if number == 0 else {},
        )
        for number, name in enumerate(names)
    ]


def _conf(options: argparse.Namespace, folder: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    standalone_conf.register_opts(conf)
    standalone_conf.set_defaults(conf, folder)
    # Configuration files of an installed service are ignored.
    conf([], project='vsched', default_config_files=[], default_config_dirs=[])
    conf.set_override('uri', options.uri, group='hypervisor')
    conf.set_override('bind_port', options.port, group='standalone')
    conf.set_override('restore_on_stop', True, group='agent')
    conf.set_override('log_file', os.path.join(folder, 'vsched.log'))
    logging.setup(conf, 'vsched-quickstart')
    return conf


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    options = _options(argv)
    over = threading.Event()
    for end in (signal.SIGINT, signal.SIGTERM):
        signal.signal(end, lambda *_: over.set())
    shown = table.Table(sys.stdout)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix='vsched-quickstart-')
        )
        specs = _specs(options, folder)
        for number, spec in enumerate(specs, 1):
            shown.say('starting VM %d/%d %s' % (number, len(specs), spec.name))
            # The neighbours that run already slow down the boot of the last
            # ones.
            stack.enter_context(
                vm.RunningDomain(
                    spec, options.uri, ready_timeout_s=120, cancel=over
                )
            )
        standalone = service.Standalone(_conf(options, folder))
        standalone.start()
        stack.callback(standalone.stop)
        shown.say(
            'vsched: %s (log %s)'
            % (standalone.url, os.path.join(folder, 'vsched.log'))
        )
        shown.say('page: %s/ui' % standalone.url)
        try:
            outcomes = demonstration.Demonstration(
                client.Client(standalone.url),
                specs[0].uuid,
                {spec.uuid: spec.name for spec in specs},
                shown,
                over.wait,
            ).run(options.seconds)
        except demonstration.NotHeld as error:
            shown.say('not held: %s' % error)
            _show_log(shown, folder)
            return 1
        except demonstration.NoLoad as error:
            shown.say('nothing to show: %s' % error)
            return 1
        _conclude(options, shown, standalone.url, outcomes, len(specs))
        if options.keep:
            shown.say(
                'running until Ctrl-C; open %s/ui in a browser, or try: '
                'curl %s/v1/reservations' % (standalone.url, standalone.url)
            )
            over.wait()
    shown.say('everything that was started is stopped')
    return 0


def _show_log(shown: table.Table, folder: str) -> None:
    with open(os.path.join(folder, 'vsched.log'), encoding='utf-8') as log:
        shown.say(log.read()[-4000:])


def _conclude(
    options: argparse.Namespace,
    shown: table.Table,
    url: str,
    outcomes: Sequence[demonstration.Outcome],
    vms: int,
) -> None:
    shown.say(
        '\nsummary (windows of 1 s; error = |got - promised| / promised)'
    )
    shown.say(
        '%-10s %8s %8s %9s %9s %8s %9s'
        % (
            'phase',
            'promised',
            'got',
            'mean err',
            'p99 err',
            'windows',
            'settled',
        )
    )
    for one in outcomes:
        found = one.summary
        if found is None:
            shown.say('%-10s too short to say' % one.phase.key)
            continue
        shown.say(
            '%-10s %8.3f %8.3f %7.2f %% %7.2f %% %8d %9s'
            % (
                one.phase.key,
                found.promised,
                found.got_mean,
                100 * found.error_mean,
                100 * found.error_p99,
                found.windows,
                '%.1f s' % found.settle_s
                if found.settle_s is not None
                else 'never',
            )
        )
    shown.say('REST API: %s/v1/reservations' % url)
    if options.json:
        _write(
            options.json,
            {
                'when': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
                'kernel': platform.release(),
                'cpus': os.cpu_count(),
                'virt_type': options.virt_type,
                'vms': vms,
                'seconds': options.seconds,
                'phases': {
                    one.phase.key: dataclasses.asdict(one.summary)
                    for one in outcomes
                    if one.summary is not None
                },
                'metrics': demonstration.metrics(outcomes),
            },
        )
        shown.say('summary written to %s' % options.json)


def _write(path: str, summary: dict[str, ty.Any]) -> None:
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(summary, file, indent=2)
        file.write('\n')


if __name__ == '__main__':
    sys.exit(main())
