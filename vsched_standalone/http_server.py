# SPDX-License-Identifier: Apache-2.0

"""An HTTP server that is stopped from another thread than its own."""

import threading
import typing as ty

from waitress import server as waitress
from waitress import wasyncore


class HttpServer:
    """Serves a WSGI application; accepts connections when it is started.

    :param host: the address to listen at.
    :param port: any free one when 0.
    :param threads: how many requests are answered at the same time.
    :raises OSError: when the address is in use.
    """

    def __init__(
        self, application: ty.Any, host: str, port: int, threads: int
    ) -> None:
        self._server: ty.Any = waitress.create_server(
            application, host=host, port=port, threads=threads, ident=None
        )
        self._thread = threading.Thread(
            target=self._server.run, name='vsched-http', daemon=True
        )

    @property
    def port(self) -> int:
        """Return the port, also when any free one was requested."""
        return int(self._server.effective_port)

    def start(self) -> None:
        """Serve in the background."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what is in progress for up to 5 s, then close all sockets.

        They are closed by the thread that waits for them. Closed by another
        one, the number of the pipe that wakes it may belong to another file
        when a request that is still being answered writes to it.
        """
        self._server.task_dispatcher.shutdown()
        if not self._thread.is_alive():
            self._close()
            return
        # The end of a request wakes the thread as well. It must not close the
        # pipe before this call has written to it.
        pulled = threading.Event()

        def close() -> None:
            pulled.wait()
            self._close()

        try:
            self._server.trigger.pull_trigger(close)
        finally:
            pulled.set()
        self._thread.join()

    def _close(self) -> None:
        wasyncore.close_all(self._server._map)
