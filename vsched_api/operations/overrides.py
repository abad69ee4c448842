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

"""What operators want instead of what flavors say, as agents ask for it."""

import typing as ty

from vsched_api.db.queries import hosts
from vsched_api.db.queries import overrides as queries
from vsched_api.db import session as db
from vsched_lib.contract import messages


def of_host(database: db.Database, host: str) -> messages.Overrides:
    """Every override of the instances on a host, stopped ones included.

    While an instance migrates both hosts list it, and its override holds on
    both.

    :returns: generation 0 and none for a host never heard of.
    """
    def work(session: ty.Any) -> messages.Overrides:
        row = hosts.by_name(session, host)
        if row is None:
            return messages.Overrides(generation=0)
        # The generation is read first: should an override be set between
        # the two reads, the agent gets it with an older number and merely
        # asks again.
        generation, host_id = row.overrides_generation, row.id
        return messages.Overrides(generation=generation, overrides=tuple(
            messages.Override(
                instance_uuid=row.instance_uuid, generation=row.generation,
                runtime_us=row.runtime_us, period_us=row.period_us,
                mode=row.mode, backend=row.backend)
            for row in queries.of_host(session, host_id)))

    return database.read(work)
