# SPDX-License-Identifier: Apache-2.0

"""Start Python processes isolated from the caller's environment.

``python -m`` looks for modules in the working directory first, and in
``PYTHONPATH``; a foreign folder, or a variable that sudo or a service manager
passes, could then inject code. Every Python process that vsched starts is
started here: isolated (``-I``: no working directory, no user's site-packages,
no ``PYTHON*`` variables), in ``/``, with an environment from an allow-list,
and without open files but its standard streams.
"""

from collections.abc import Iterable
import contextlib
import os
import subprocess
import sys
import typing as ty

#: The PATH of started processes, instead of the caller's.
PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
#: Variables kept from the caller's environment: language and time zone.
KEPT = ('LANG', 'LC_ALL', 'LC_CTYPE', 'LC_MESSAGES', 'TZ')
#: Variables that all of them have. Oslo's libraries import eventlet where it
#: is installed, and that a DNS resolver which nobody here uses: a third of the
#: CPU time in which a helper starts.
FIXED = {'EVENTLET_NO_GREENDNS': 'yes'}


def command(*arguments: str) -> tuple[str, ...]:
    """Build the command line of an isolated interpreter.

    :param arguments: of the interpreter: ``-m MODULE``, ``-c CODE`` or a
        script's absolute path, and what follows.
    :returns: the command line, with this interpreter's absolute path.
    :raises RuntimeError: when the interpreter's path is unknown.
    """
    if not os.path.isabs(sys.executable or ''):
        raise RuntimeError(
            'the path of this Python interpreter is %r, an absolute path is '
            'needed to start another one' % sys.executable
        )
    return (sys.executable, '-I', *arguments)


def environment() -> dict[str, str]:
    """Return the environment of such a process."""
    return {
        'PATH': PATH,
        **FIXED,
        **{name: os.environ[name] for name in KEPT if name in os.environ},
    }


def start(words: Iterable[str], **streams: ty.Any) -> subprocess.Popen[ty.Any]:
    """Start a process isolated from this one's environment.

    :param words: a command line, from :func:`command`.
    :param streams: ``stdin``, ``stdout``, ``stderr`` and ``text`` of
        :class:`subprocess.Popen`.
    :returns: the process.
    :raises OSError: when it cannot be started.
    """
    return subprocess.Popen(
        tuple(words), cwd='/', env=environment(), close_fds=True, **streams
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process, wait for its end, and close what it is connected to."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
