# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A network service of a cloud that has no networks.

Nova asks for the ports of a server even when it was booted without any.
There are none, of nothing.
"""

import json
import typing as ty


def application(environ: dict[str, ty.Any],
                start_response: ty.Callable[..., ty.Any]) -> list[bytes]:
    """Answers every list with an empty one."""
    name = environ['PATH_INFO'].strip('/').rpartition('/')[2]
    found = environ['REQUEST_METHOD'] == 'GET' and name.endswith('s')
    start_response('200 OK' if found else '404 Not Found', [
        ('Content-Type', 'application/json')])
    return [json.dumps({name.replace('-', '_'): []}).encode()]
