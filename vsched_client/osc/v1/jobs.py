# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu job``."""

import argparse
import typing as ty

from vsched_client.osc import command
from vsched_client.osc import options
from vsched_client.osc import progress
from vsched_client.osc import tables

Column = tables.Column


def add_job(parser: argparse.ArgumentParser) -> None:
    """Add the argument for a job."""
    parser.add_argument(
        'job', metavar='<job>', type=options.uuid, help='UUID of the job'
    )


class ListJobs(command.List):
    """List jobs of hosts, newest first."""

    columns = (
        Column('uuid', 'Job'),
        Column('host', 'Host'),
        Column('kind', 'Kind'),
        Column('state', 'State'),
        Column('progress_ppm', 'Progress', tables.ppm),
        Column('detail', 'Detail'),
        Column('eta_s', 'Time left', tables.seconds),
        Column('attempt', 'Attempt', extra=True),
        Column('created_at', 'Created', tables.time),
        Column('started_at', 'Started', tables.time),
        Column('updated_at', 'Updated', tables.time, extra=True),
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        options.add_host(parser)
        parser.add_argument(
            '--state',
            metavar='<state>',
            action='append',
            default=[],
            help='Only those in this state: queued, running, done, failed or '
            'cancelled; may be repeated',
        )
        parser.add_argument(
            '--kind',
            metavar='<kind>',
            action='append',
            default=[],
            help='Only those of this kind: profile-error or '
            'profile-overhead; may be repeated',
        )
        options.add_limit(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.table(
            parsed_args,
            self.client.jobs.list(
                host=parsed_args.host,
                states=parsed_args.state,
                kinds=parsed_args.kind,
                limit=parsed_args.limit,
            ),
        )


class Show(command.Show):
    """Base of the commands that print one job."""

    columns = (
        Column('uuid', 'Job'),
        Column('host', 'Host'),
        Column('kind', 'Kind'),
        Column('state', 'State'),
        Column('progress_ppm', 'Progress', tables.ppm),
        Column('detail', 'Detail'),
        Column('eta_s', 'Time left', tables.seconds),
        Column('attempt', 'Attempt'),
        Column('parameters', 'Parameters'),
        Column('created_at', 'Created', tables.time),
        Column('started_at', 'Started', tables.time),
        Column('updated_at', 'Updated', tables.time),
    )

    def answered(
        self,
        parsed_args: argparse.Namespace,
        job: ty.Any,
        desired: str = 'done',
    ) -> tables.Rows:
        """Return the output, after the job's end if that is waited for.

        :param desired: the state in which it has to end.
        """
        if parsed_args.wait:
            job = self.finished(parsed_args, job)
            if job['state'] != desired:
                self.refuse(
                    'host %s: the job is %s: %s'
                    % (job['host'], job['state'], job['detail'])
                )
        return self.table(parsed_args, job)

    def finished(self, parsed_args: argparse.Namespace, job: ty.Any) -> ty.Any:
        """Wait for the end of a job, and show how far it has got."""
        return finished(self, parsed_args, job)


def finished(
    asking: command.Base, parsed_args: argparse.Namespace, job: ty.Any
) -> ty.Any:
    """Wait for the end of a job, and show how far it has got.

    :param asking: the command that waits.
    :returns: the job in its last state.
    """
    bar = progress.Progress(asking.app.stderr)
    try:
        return asking.client.jobs.wait(
            job['uuid'], options.timeout_s(parsed_args), bar.show
        )
    finally:
        bar.close()


class ShowJob(Show):
    """Show a job and how far it has got."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        add_job(parser)
        options.add_wait(parser, 'it has ended', options.JOB_TIMEOUT_S)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.answered(
            parsed_args, self.client.jobs.get(parsed_args.job)
        )


class CancelJob(Show):
    """Have the agent stop a job, or not begin with it."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        add_job(parser)
        options.add_wait(
            parser, 'the agent has confirmed it', options.ANSWER_TIMEOUT_S
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.answered(
            parsed_args, self.client.jobs.cancel(parsed_args.job), 'cancelled'
        )


class ResumeJob(Show):
    """Have the agent go on with a job that was cancelled or failed."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser of the options."""
        parser = super().get_parser(prog_name)
        add_job(parser)
        options.add_wait(parser, 'it has ended', options.JOB_TIMEOUT_S)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tables.Rows:
        """Return the output."""
        return self.answered(
            parsed_args, self.client.jobs.resume(parsed_args.job)
        )
