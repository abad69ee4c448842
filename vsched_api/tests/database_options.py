# SPDX-License-Identifier: Apache-2.0

"""The configuration of a service that uses a database of a test."""

from oslo_config import cfg

import vsched_api.conf


def configuration(url: str, *args: str) -> cfg.ConfigOpts:
    """Options of a service that uses that database, without keystone."""
    conf = cfg.ConfigOpts()
    vsched_api.conf.register_opts(conf)
    conf(
        args=list(args),
        project='vsched-test',
        default_config_files=[],
        default_config_dirs=[],
    )
    conf.set_override('connection', url, 'database')
    conf.set_override('auth_strategy', 'noauth', 'api')
    return conf
