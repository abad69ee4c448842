# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage openapi``: the description of the REST API."""

import json
import typing as ty

from oslo_config import cfg


def add_commands(subparsers: ty.Any) -> None:
    """Add the command to an argument parser."""
    openapi = subparsers.add_parser(
        'openapi',
        help='Print the OpenAPI document of the REST API, as '
        '/v1/openapi.json has it, without a service or a database.',
    )
    openapi.set_defaults(act=_print)


def _print(conf: cfg.ConfigOpts) -> int:
    # Only here: no other command needs the routes.
    from vsched_api.rest import openapi_document

    print(json.dumps(openapi_document.document(), indent=2))
    return 0
