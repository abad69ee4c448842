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

"""The application for a WSGI server: ``vsched_api.wsgi.api:application``.

Options are read from ``vsched.conf`` and ``vsched-api.conf`` in the usual
folders, or from the files that OS_VSCHED_CONFIG_FILES names, separated by
colons. The command line belongs to the server.
"""

import os
import typing as ty

from vsched_api import app
from vsched_api.conf import startup
from vsched_lib.contract import rpc

FILES_VARIABLE = 'OS_VSCHED_CONFIG_FILES'


def make() -> ty.Any:
    """Read the options and make the application."""
    named = os.environ.get(FILES_VARIABLE)
    conf = startup.read(
        'vsched-api', [], files=named.split(':') if named else None)
    return app.create_app(conf, rpc.get_transport(conf))


application = make()
