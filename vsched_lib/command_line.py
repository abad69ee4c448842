# SPDX-License-Identifier: Apache-2.0

"""Options of the command line that all commands share."""

from collections.abc import Sequence
import sys
import typing as ty

from oslo_config import cfg

_COMPLETION = '--shell_completion'


class Options(cfg.ConfigOpts):
    """oslo.config's options without ``--shell_completion``.

    oslo.config adds that option to every command, and fails with a traceback
    when it is used: its packages lack the templates.
    """

    def __init__(self) -> None:
        super().__init__()
        option = getattr(self, '_shell_completion_opt', None)
        if option is not None:
            self.unregister_opt(option)

    def __call__(
        self, args: Sequence[str] | None = None, *rest: ty.Any, **more: ty.Any
    ) -> None:
        """Read the command line and the files, as oslo.config does.

        :raises SystemExit: with status 2 when the removed option is given.
        """
        words = sys.argv[1:] if args is None else args
        if any(
            word == _COMPLETION or word.startswith(_COMPLETION + '=')
            for word in words
        ):
            print(
                '%s: %s is not available: oslo.config is packaged without '
                'the templates that it needs'
                % (more.get('prog') or sys.argv[0], _COMPLETION),
                file=sys.stderr,
            )
            raise SystemExit(2)
        super().__call__(words, *rest, **more)
