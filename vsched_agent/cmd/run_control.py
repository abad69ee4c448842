# SPDX-License-Identifier: Apache-2.0

"""What the runs of all profiles have in common on the command line."""

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
    """Options of every run."""
    run.add_argument(
        '--resume',
        action='store_true',
        help='go on with the run that was stopped',
    )
    run.add_argument(
        '--dry-run',
        action='store_true',
        help='say what would be measured, and for how long',
    )
    run.add_argument(
        '--json',
        action='store_true',
        help='tell the progress as one JSON object a line',
    )
    run.add_argument(
        '--run',
        metavar='UUID',
        help='go on with the run of this name, or begin it',
    )
    run.add_argument(
        '--watch-input',
        action='store_true',
        help='stop when the standard input ends',
    )


def open_file(
    conf: cfg.ConfigOpts, name: str, header: dict[str, ty.Any]
) -> checkpoint.RunFile:
    """The file of a run, gone on with as the command line says.

    :param name: of the file.
    :param header: what the run is about.
    """
    path = os.path.join(manager.folder(conf), name)
    header = {'run': conf.command.run, **header}
    if conf.command.run is not None:
        try:
            return checkpoint.RunFile(path, header, True)
        except checkpoint.NotTheSame:
            return checkpoint.RunFile(path, header, False)
    return checkpoint.RunFile(path, header, conf.command.resume)


def stop_when_told(conf: cfg.ConfigOpts, stopping: threading.Event) -> None:
    """Have signals, or the end of the input, stop the run."""
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
    # Whoever started us keeps our input open as long as we are wanted.
    while os.read(0, 4096):
        pass
    stopping.set()


def teller(as_json: bool) -> Callable[[int, str], None]:
    """What tells of a run's progress."""

    def tell(progress_ppm: int, doing: str) -> None:
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

    return tell
