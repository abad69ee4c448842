# SPDX-License-Identifier: Apache-2.0

"""What the commands share: exit codes, messages and output."""

import argparse
from collections.abc import Iterable
import typing as ty

from osc_lib.command import command

from vsched_client import errors
from vsched_client.osc import exit_codes
from vsched_client.osc import formatters
from vsched_client.osc import tables
from vsched_client.osc import terminal

ExitCode = exit_codes.ExitCode


class Base(command.Command):
    """A command that uses the API.

    :ivar exit_code: what it returns when no error ends it.
    """

    exit_code = ExitCode.DONE

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; return its exit code."""
        try:
            super().run(parsed_args)
        except errors.ClientError as problem:
            if self.app.options.debug:
                self.log.exception(problem)
            self.report(str(problem))
            return exit_codes.of(problem)
        return self.exit_code

    @property
    def client(self) -> ty.Any:
        """The client of the API."""
        # Plugins add their attributes.
        manager: ty.Any = self.app.client_manager
        return manager.vsched

    @property
    def compute(self) -> ty.Any:
        """The client of Nova, openstacksdk's.

        The manager's own ``compute`` is another one before
        python-openstackclient 7.
        """
        manager: ty.Any = self.app.client_manager
        return manager.sdk_connection.compute

    def report(self, text: str) -> None:
        """Write a message for people, beside the output."""
        self.app.stderr.write(terminal.clean(text) + '\n')
        self.app.stderr.flush()

    def refuse(self, text: str) -> None:
        """Report that a host does not do what was asked for."""
        self.exit_code = ExitCode.REFUSED
        self.report(text)


class List(Base, command.Lister):
    """A command that prints a list.

    :cvar columns: its columns.
    """

    columns: ty.ClassVar[tables.Columns] = ()

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; return its exit code."""
        _translate(parsed_args, self.columns_of(parsed_args))
        return super().run(parsed_args)

    def columns_of(self, parsed_args: argparse.Namespace) -> tables.Columns:
        """Return the columns for these options."""
        return self.columns

    def table(
        self, parsed_args: argparse.Namespace, rows: Iterable[tables.Object]
    ) -> tables.Rows:
        """Return what :meth:`take_action` has to."""
        shown = tables.visible(
            parsed_args.formatter,
            self.columns_of(parsed_args),
            [*parsed_args.columns, *parsed_args.sort_columns],
        )
        return tables.of_list(parsed_args.formatter, shown, rows)


class Show(Base, command.ShowOne):
    """A command that prints one object.

    :cvar columns: what a table shows of it.
    """

    columns: ty.ClassVar[tables.Columns] = ()

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Run the command; return its exit code."""
        _translate(parsed_args, self.columns)
        return super().run(parsed_args)

    def _load_formatter_plugins(self) -> ty.Any:
        return formatters.with_csv(super()._load_formatter_plugins())

    def table(
        self, parsed_args: argparse.Namespace, one: tables.Object
    ) -> tables.Rows:
        """Return what :meth:`take_action` has to."""
        shown = tables.visible(
            parsed_args.formatter, self.columns, parsed_args.columns
        )
        return tables.of_one(parsed_args.formatter, shown, one)


def _translate(
    parsed_args: argparse.Namespace, columns: tables.Columns
) -> None:
    for option in ('columns', 'sort_columns'):
        if hasattr(parsed_args, option):
            setattr(
                parsed_args,
                option,
                tables.translated(
                    parsed_args.formatter,
                    columns,
                    getattr(parsed_args, option),
                ),
            )
