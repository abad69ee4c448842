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

"""Times as requests and answers say them."""

import datetime


def iso(seconds: float | None) -> str | None:
    """ISO 8601 in UTC, to the microsecond.

    :param seconds: since the epoch.
    """
    if seconds is None:
        return None
    return datetime.datetime.fromtimestamp(
        seconds, datetime.UTC).isoformat(
            timespec='microseconds').replace('+00:00', 'Z')


def seconds(text: str) -> float:
    """Seconds since the epoch; a time that names no zone is UTC.

    :raises ValueError: when it is not ISO 8601.
    """
    moment = datetime.datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    try:
        return moment.timestamp()
    except OverflowError as problem:
        raise ValueError(str(problem)) from None
