# SPDX-License-Identifier: Apache-2.0

"""A network service of a cloud that has no networks.

Nova asks for the ports of a server even when it was booted without any.
There are none, of nothing.
"""

import json
import typing as ty


def application(
    environ: dict[str, ty.Any], start_response: ty.Callable[..., ty.Any]
) -> list[bytes]:
    """Answers every list with an empty one."""
    name = environ['PATH_INFO'].strip('/').rpartition('/')[2]
    found = environ['REQUEST_METHOD'] == 'GET' and name.endswith('s')
    start_response(
        '200 OK' if found else '404 Not Found',
        [('Content-Type', 'application/json')],
    )
    return [json.dumps({name.replace('-', '_'): []}).encode()]
