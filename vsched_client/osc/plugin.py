# SPDX-License-Identifier: Apache-2.0

"""What python-openstackclient asks of a plugin."""

import argparse
import re
import typing as ty

from osc_lib import exceptions
from osc_lib import utils

API_NAME = 'vsched'
API_VERSION_OPTION = 'os_vsched_api_version'
DEFAULT_API_VERSION = '1'

_VERSION = re.compile(r'1(\.[0-9]{1,4})?\Z', re.ASCII)


def make_client(instance: ty.Any) -> ty.Any:
    """Return a client of the API.

    :param instance: the client manager of the command line.
    """
    from vsched_client import adapter
    from vsched_client.v1 import client

    version = instance._api_version[API_NAME]
    return client.Client(
        instance.session,
        region_name=instance.region_name,
        interface=instance.interface,
        endpoint_override=instance.get_configuration().get(
            'vsched_endpoint_override'
        ),
        default_microversion=adapter.MICROVERSION
        if version == DEFAULT_API_VERSION
        else version,
    )


def build_option_parser(
    parser: argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    """Add the global options of the plugin."""
    parser.add_argument(
        '--os-vsched-api-version',
        metavar='<vsched-api-version>',
        default=utils.env('OS_VSCHED_API_VERSION'),
        help='vsched API version, default=%s (Env: OS_VSCHED_API_VERSION)'
        % DEFAULT_API_VERSION,
    )
    return parser


def check_api_version(version: str) -> bool:
    """Check the version that the user asks for.

    :raises exceptions.CommandError: for a version without commands here.
    """
    if _VERSION.match(version) is None:
        raise exceptions.CommandError(
            'vsched API version %s is not accepted; accepted: 1 or 1.N'
            % ascii(version[:32])
        )
    return True
