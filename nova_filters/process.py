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

"""What all filters and weighers of one process share."""

import threading

from nova.conf import CONF

from nova_filters import cache
from nova_filters import conf
from nova_filters import source

# Nova gives its filters no options: they read the process-wide ones.
conf.register_opts(CONF)

_making = threading.Lock()
_made: list[cache.Cache] = []


def shared() -> cache.Cache:
    """The one copy of what is known of all hosts.

    Made at the first use, when Nova has read its options.
    """
    if not _made:
        with _making:
            if not _made:
                _made.append(cache.Cache(
                    lambda: source.Source(CONF),
                    CONF.vsched.refresh_interval))
    return _made[0]
