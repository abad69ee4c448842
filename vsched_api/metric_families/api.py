# SPDX-License-Identifier: Apache-2.0

"""Metrics of the REST service itself."""

from vsched_lib.metrics import family

_counter = family.counter
_Family = family.Family

INFO = _Family(
    'vsched_api_info',
    family.Kind.INFO,
    'Version of the REST service. The value is 1.',
    ('version',),
)
REQUESTS = _counter(
    'vsched_api_requests_total',
    'Requests that were answered, by route, method and class of the status. '
    'The route is the template, "unmatched" for addresses that no route has '
    'and for requests that were answered before a route was found. A route '
    'that has answered has a series of 5xx, at 0 while none was.',
    'route',
    'method',
    'status',
)
DURATION = _Family(
    'vsched_api_request_duration_seconds',
    family.Kind.HISTOGRAM,
    'Time from the headers of a request to the end of its answer.',
    ('route', 'method'),
    family.DURATIONS,
)

#: Of GET /metrics, about the REST service itself.
ALL = (INFO, REQUESTS, DURATION)
