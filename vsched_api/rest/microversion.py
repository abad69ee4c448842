# SPDX-License-Identifier: Apache-2.0

"""Which version of the API a request selects.

1.0 is the first. A change that a client could notice gets the next number,
and a line here.
"""

import flask
import microversion_parse

from vsched_api.rest import errors
from vsched_lib.contract import errors as contract_errors

SERVICE_TYPE = 'vsched'
HEADER = 'OpenStack-API-Version'
MIN_VERSION = '1.0'
MAX_VERSION = '1.0'

_LATEST = 'latest'


def negotiate() -> flask.Response | None:
    """Keep the version in ``flask.g.version``, or refuse the request."""
    flask.g.version = MIN_VERSION
    wanted = microversion_parse.get_version(
        dict(flask.request.headers), SERVICE_TYPE
    )
    if wanted is None:
        return None
    if wanted == _LATEST:
        flask.g.version = MAX_VERSION
        return None
    try:
        version = microversion_parse.parse_version_string(wanted)
    except TypeError:
        return errors.response(
            400,
            contract_errors.Code.BAD_REQUEST,
            ['%s: %s is not a version' % (HEADER, ascii(wanted[:64]))],
        )
    if not version.matches(
        microversion_parse.parse_version_string(MIN_VERSION),
        microversion_parse.parse_version_string(MAX_VERSION),
    ):
        return errors.response(
            406,
            contract_errors.Code.NOT_ACCEPTABLE,
            [
                '%s: %s is not one of %s to %s'
                % (HEADER, version, MIN_VERSION, MAX_VERSION)
            ],
            min_version=MIN_VERSION,
            max_version=MAX_VERSION,
        )
    flask.g.version = str(version)
    return None


def announce(answer: flask.Response) -> flask.Response:
    """Say which version the answer is of, and that others may differ."""
    answer.headers[HEADER] = '%s %s' % (
        SERVICE_TYPE,
        flask.g.get('version', MIN_VERSION),
    )
    answer.vary.add(HEADER)
    return answer
