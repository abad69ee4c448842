# SPDX-License-Identifier: Apache-2.0

"""A way to a server that can be shut, as if the server had died."""

import socket
import threading

from vsched_lib.tests import ports


class Door:
    """Passes connections on while it is open.

    :param target: the server's host and port.
    :ivar port: of the local end; the same each time it opens.
    """

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._ends: list[socket.socket] = []
        self.port = ports.reserve()

    def open(self) -> None:
        """Let connections through."""
        listener = socket.create_server(('127.0.0.1', self.port))
        self._listener = listener
        threading.Thread(
            target=self._accept, args=(listener,), daemon=True
        ).start()

    def shut(self) -> None:
        """End every connection and refuse new ones."""
        with self._lock:
            ends, self._ends = self._ends, []
            if self._listener is not None:
                ends.append(self._listener)
                self._listener = None
            for end in ends:
                # Wakes the thread that waits for it; closing would not.
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    # Its other side was faster.
                    pass
                end.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near = listener.accept()[0]
            except OSError:
                # The door was shut.
                return
            far = socket.create_connection(self._target)
            with self._lock:
                if self._listener is not listener:
                    near.close()
                    far.close()
                    return
                self._ends += [near, far]
            threading.Thread(
                target=self._pass_on, args=(near, far), daemon=True
            ).start()

    def _pass_on(self, near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(
            target=self._pump, args=(far, near), daemon=True
        )
        back.start()
        self._pump(near, far)
        back.join()
        with self._lock:
            for end in (near, far):
                if end in self._ends:
                    self._ends.remove(end)
                    end.close()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        try:
            while chunk := source.recv(65536):
                sink.sendall(chunk)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            # The door was shut, or one side has ended the connection.
            return
