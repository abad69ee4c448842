# SPDX-License-Identifier: Apache-2.0

"""``openstack`` within the process of a test, with this plugin only."""

import contextlib
import io
import logging
import os
import typing as ty
from unittest import mock
import warnings

from openstack import connection
from openstackclient.common import clientmanager
from openstackclient import shell as openstack
from osc_lib import clientmanager as base

from vsched_client.osc import plugin
from vsched_client.tests import entry_points
from vsched_client.tests import scenario


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """Return that it is."""
        return True


class _Shell(openstack.OpenStackShell):
    def _load_commands(self) -> None:
        super()._load_commands()
        for name in entry_points.commands():
            self.command_manager.add_command(name, entry_points.load(name))


def run(
    *arguments: str,
    url: str = 'http://127.0.0.1:1',
    authentication: ty.Sequence[str] | None = None,
    out: io.StringIO | None = None,
    err: io.StringIO | None = None,
    compute: ty.Any = None,
) -> scenario.Result:
    """Run one command.

    :param url: of the API, without keystone.
    :param authentication: options instead of this.
    :param out: takes the output.
    :param err: takes messages.
    :param compute: the client of Nova instead of openstacksdk's.
    """
    out, err = out or io.StringIO(), err or io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith('OS_')
    }
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter('ignore')
        stack.enter_context(
            mock.patch.dict(os.environ, environment, clear=True)
        )
        stack.enter_context(contextlib.redirect_stderr(err))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(
            mock.patch.object(clientmanager, 'PLUGIN_MODULES', [plugin])
        )
        # A cache lasts as long as its class.
        stack.enter_context(
            mock.patch.object(
                base.ClientManager,
                plugin.API_NAME,
                base.ClientCache(plugin.make_client),
                create=True,
            )
        )
        if compute is not None:
            stack.enter_context(
                mock.patch.object(
                    connection.Connection, 'compute', compute, create=True
                )
            )
        try:
            code = _Shell().run(
                [
                    *(
                        ('--os-auth-type', 'none', '--os-endpoint', url)
                        if authentication is None
                        else authentication
                    ),
                    *arguments,
                ]
            )
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        finally:
            root.handlers[:], root.level = before
    return scenario.Result(code, out.getvalue(), err.getvalue())
