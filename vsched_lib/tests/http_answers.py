# SPDX-License-Identifier: Apache-2.0

"""A server of HTTP whose answers a test gives."""

from collections.abc import Callable
from collections.abc import Mapping
import http.server
import threading
import typing as ty

#: Status, body and more headers.
Answer = tuple[int, bytes, Mapping[str, str]]


def serve(
    test: ty.Any, answer: Callable[[str, Mapping[str, str]], Answer]
) -> str:
    """Answer each GET until the end of a test.

    :param test: the test case.
    :param answer: called with path and headers of each request, by any
        thread.
    :returns: the URL.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body, headers = answer(self.path, dict(self.headers))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    test.addCleanup(thread.join)
    test.addCleanup(server.server_close)
    test.addCleanup(server.shutdown)
    return 'http://127.0.0.1:%d' % server.server_port
