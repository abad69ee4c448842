# SPDX-License-Identifier: Apache-2.0

"""Options and control of the runs of all profiles."""

import argparse
from collections.abc import Callable
import json
import os
import signal
import sys
import threading
import typing as ty

from oslo_config import cfg

from vsched_agent.profiling import checkpoint
from vsched_agent.profiling import manager


def add_options(run: argparse.ArgumentParser) -> None:
    """Add the options of all runs."""
    run.add_argument(
        '--resume', action='store_true', help='resume the run that was stopped'
    )
    run.add_argument(
        '--dry-run',
        action='store_true',
        help='print what would be measured, and how long it takes',
    )
    run.add_argument(
        '--json',
        action='store_true',
        help='print the progress as one JSON object a line',
    )
    run.add_argument(
        '--run',
        metavar='UUID',
        help='resume the run of this name, or start it',
    )
    run.add_argument(
        '--watch-input',
        action='store_true',
        help='stop at the end of standard input',
    )


def open_file(
    conf: cfg.ConfigOpts, name: str, header: dict[str, ty.Any]
) -> checkpoint.RunFile:
    """Open the file of a run, resumed or new as the options say.

    :param name: of the file.
    :param header: describes the run.
    """
    path = os.path.join(manager.folder(conf), name)
    header = {'run': conf.command.run, **header}
    if conf.command.run is not None:
        try:
            return checkpoint.RunFile(path, header, True)
        except checkpoint.NotTheSame:
            return checkpoint.RunFile(path, header, False)
    return checkpoint.RunFile(path, header, conf.command.resume)


def stop_on_request(conf: cfg.ConfigOpts, stopping: threading.Event) -> None:
    """Stop the run on a signal, or at the end of standard input."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopping.set())
    if conf.command.watch_input:
        threading.Thread(
            target=_until_closed,
            args=(stopping,),
            name='vsched-input',
            daemon=True,
        ).start()


def _until_closed(stopping: threading.Event) -> None:
    # The parent process keeps the pipe open until the run must stop.
    while os.read(0, 4096):
        pass
    stopping.set()


def progress_printer(as_json: bool) -> Callable[[int, str], None]:
    """Return a function that prints the progress of a run."""

    def report(progress_ppm: int, doing: str) -> None:
        if as_json:
            print(
                json.dumps({'progress_ppm': progress_ppm, 'detail': doing}),
                flush=True,
            )
        elif sys.stderr.isatty():
            print(
                '\r%5.1f %%  %-70s' % (progress_ppm / 10_000, doing[:70]),
                end='',
                file=sys.stderr,
                flush=True,
            )

    return report
