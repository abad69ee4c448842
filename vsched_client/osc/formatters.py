# SPDX-License-Identifier: Apache-2.0

"""Output formats that cliff does not have."""

import argparse
from collections.abc import Sequence
from importlib import metadata
import typing as ty

from cliff.formatters import base
from cliff.formatters import commaseparated
import stevedore
from stevedore import extension

CSV = 'csv'


class CsvOfOne(base.SingleFormatter):
    """CSV of one object: a line with the names, and one with the values.

    Both are written as cliff writes those of a list.
    """

    def __init__(self) -> None:
        self._lister = commaseparated.CSVLister()

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the format."""
        self._lister.add_argument_group(parser)

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Sequence[ty.Any],
        stdout: ty.TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        """Write the object."""
        self._lister.emit_list(column_names, [data], stdout, parsed_args)


_ENTRY_POINT = metadata.EntryPoint(
    CSV, '%s:%s' % (CsvOfOne.__module__, CsvOfOne.__name__), 'cliff.formatter'
)


def with_csv(
    plugins: 'stevedore.ExtensionManager[ty.Any]',
) -> 'stevedore.ExtensionManager[ty.Any]':
    """Return formats of one object, and CSV.

    An entry point of its own would give it to the commands of every plugin.
    """
    return stevedore.ExtensionManager.make_test_instance(
        [
            *(one for one in plugins if one.name != CSV),
            extension.Extension(CSV, _ENTRY_POINT, CsvOfOne, CsvOfOne()),
        ],
        namespace=plugins.namespace,
    )
