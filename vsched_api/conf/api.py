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

"""Options of the REST service."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup('api', title='The REST service')

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('keystone', 'Requests carry a token that keystone confirms.'),
            ('noauth', 'Every request counts as one of an administrator. '
                       'For a single host and for tests only.'),
        ],
        help='How a request proves who it is from.'),
    cfg.IntOpt(
        'max_limit',
        default=1000, min=1,
        help='The most items that one page of a list holds, and how many it '
             'holds when the request names no limit.'),
    cfg.IntOpt(
        'max_request_body_size',
        default=65536, min=1024,
        help='The longest request body that is read, in bytes.'),
    cfg.FloatOpt(
        'host_down_after_s',
        default=30.0, min=1.0,
        help='A host whose last report is older than this counts as down, '
             'in seconds.'),
    cfg.IntOpt(
        'retry_after_s',
        default=5, min=1,
        help='What the Retry-After header says while the database is away, '
             'in seconds.'),
    cfg.URIOpt(
        'public_endpoint',
        schemes=['http', 'https'],
        help='Start of the links in answers, where a proxy changes it and '
             'does not say so in its headers.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options."""
    return [(GROUP, OPTS)]
