# SPDX-License-Identifier: Apache-2.0

"""vsched-agent: run, doctor, restore."""

from collections.abc import Sequence
import functools
import json
import os
import resource
import sys
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import backend

# oslo.service selects eventlet unless another backend is set before.
backend.init_backend(backend.BackendType.THREADING)

from oslo_service import service as oslo_service  # noqa: E402
import pbr.version  # noqa: E402

from vsched_agent.ballooning import manager  # noqa: E402
from vsched_agent.cmd import overhead  # noqa: E402
from vsched_agent.cmd import placement  # noqa: E402
from vsched_agent.cmd import profile  # noqa: E402
from vsched_agent.cmd import usage  # noqa: E402
from vsched_agent import conf as agent_conf  # noqa: E402
from vsched_agent.conf import hypervisor as hypervisor_conf  # noqa: E402
from vsched_agent.enforcement import affinity  # noqa: E402
from vsched_agent.enforcement import backends  # noqa: E402
from vsched_agent.enforcement import diagnosis  # noqa: E402
from vsched_agent.enforcement import doctor as examination  # noqa: E402
from vsched_agent.hypervisor import base as hypervisor  # noqa: E402
from vsched_agent.hypervisor import factory  # noqa: E402
from vsched_agent import privileged  # noqa: E402
from vsched_agent.reporting import events  # noqa: E402
from vsched_agent.reporting import unrestored  # noqa: E402
from vsched_agent.reservations import admission  # noqa: E402
from vsched_agent.reservations import enforcer  # noqa: E402
from vsched_agent import service  # noqa: E402
from vsched_agent.state import directory  # noqa: E402
from vsched_agent.state import schema  # noqa: E402
from vsched_agent.state import storage  # noqa: E402
from vsched_lib import command_line  # noqa: E402


def _run(conf: cfg.ConfigOpts) -> int:
    try:
        schema.check_version(
            os.path.join(conf.agent.state_path, 'agent.sqlite')
        )
    except schema.NewerJournal as error:
        print('vsched-agent run: %s' % error, file=sys.stderr)
        return 1
    # The usage meter keeps one file open for each vCPU thread. The low soft
    # limit only protects programs that use select(), unlike this one.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    launcher = oslo_service.launch(conf, service.Agent(conf))
    launcher.wait()
    return 0


def _examine(conf: cfg.ConfigOpts) -> list[diagnosis.Finding]:
    if hypervisor_conf.is_xen(conf):
        # Imported on hosts of Xen only.
        from vsched_agent.enforcement.xen import doctor

        return doctor.examine(backends.enabled(conf))
    return examination.examine(repair=conf.command.repair)


def _doctor(conf: cfg.ConfigOpts) -> int:
    findings = _examine(conf)
    try:
        with factory.once(conf) as driver:
            count = len(driver.domains())
    except hypervisor.HypervisorUnavailable as error:
        findings.append(
            diagnosis.Finding(
                diagnosis.Level.PROBLEM,
                'hypervisor',
                '%s does not answer: %s' % (conf.hypervisor.uri, error),
                'start libvirtd, or set [hypervisor] uri',
            )
        )
    else:
        findings.append(
            diagnosis.Finding(
                diagnosis.Level.OK,
                'hypervisor',
                '%s answers: %d running instances'
                % (conf.hypervisor.uri, count),
            )
        )
    findings.append(directory.finding(conf.agent.state_path))
    findings.append(profile.finding(conf))
    findings.append(overhead.finding(conf))
    findings.append(placement.finding(conf))
    if conf.command.json:
        print(json.dumps([finding.to_dict() for finding in findings]))
    else:
        print(diagnosis.render(findings))
    return int(
        any(finding.level is diagnosis.Level.PROBLEM for finding in findings)
    )


def _restore(conf: cfg.ConfigOpts) -> int:
    try:
        held = directory.open_state(conf.agent.state_path)
    except (directory.InUse, schema.NewerJournal) as error:
        print('vsched-agent restore: %s' % error, file=sys.stderr)
        return 1
    rungs = backends.Ladder(conf)
    waiting = events.Events()
    try:
        with factory.once(conf) as driver:
            damaged = held.journal.loss() is storage.Loss.DAMAGED
            channel = factory.channel_from_conf(conf)
            restored = directory.restore_all(
                enforcer.Enforcer(
                    rungs.backends,
                    rungs.support,
                    admission.NoCapacity(),
                    held.journal,
                    pinning=affinity.Affinity(),
                ),
                driver,
                held.journal,
                functools.partial(unrestored.add, waiting),
            )
            unrestored.post(waiting, conf.agent.host, held.journal)
            problems = list(restored.problems)
            if channel is not None:
                problems += manager.give_back(
                    conf,
                    channel,
                    held.journal,
                    driver.domains() if damaged else (),
                )
    except hypervisor.HypervisorUnavailable as error:
        print(
            'vsched-agent restore: %s does not answer, nothing was '
            'changed: %s' % (conf.hypervisor.uri, error),
            file=sys.stderr,
        )
        return 1
    finally:
        held.close()
    print(
        '%d instances are as they were found; %d that vsched had touched '
        'do not run any more' % (restored.restored, restored.gone)
    )
    for problem in problems:
        print('vsched-agent restore: %s' % problem, file=sys.stderr)
    return int(bool(problems))


def _commands(parsers: ty.Any) -> None:
    run = parsers.add_parser('run', help='enforce reservations until stopped')
    run.set_defaults(handler=_run)
    doctor = parsers.add_parser(
        'doctor',
        help='print which backends this host can enforce, and why '
        'not the others',
    )
    doctor.add_argument(
        '--json', action='store_true', help='print the findings as JSON'
    )
    doctor.add_argument(
        '--repair',
        action='store_true',
        help='release bandwidth that the kernel leaked',
    )
    doctor.set_defaults(handler=_doctor)
    restore = parsers.add_parser(
        'restore',
        help='restore the original settings of all threads and cgroups; the '
        'agent must not run',
    )
    restore.set_defaults(handler=_restore)
    placement.add_commands(parsers)
    profile.add_commands(parsers)
    usage.add_commands(parsers)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    conf = command_line.Options()
    logging.register_options(conf)
    agent_conf.register_opts(conf)
    conf.register_cli_opt(
        cfg.SubCommandOpt('command', title='commands', handler=_commands)
    )
    conf(
        list(sys.argv[1:] if argv is None else argv),
        project='vsched',
        prog='vsched-agent',
        version=pbr.version.VersionInfo('vsched').version_string(),
    )
    if conf.command.handler is not _run:
        # The other commands print their results to standard output, where
        # oslo.log would log by default.
        conf.set_default('use_stderr', True)
    logging.setup(conf, 'vsched-agent')
    privileged.use(conf)
    status: int = conf.command.handler(conf)
    return status


if __name__ == '__main__':
    sys.exit(main())
