# SPDX-License-Identifier: Apache-2.0

"""Who may do what: one module for each noun, one rule for each operation."""

import os

from oslo_config import cfg
from oslo_policy import opts
from oslo_policy import policy

from vsched_api import nouns
from vsched_api.policies import base


def get_enforcer() -> policy.Enforcer:
    """The enforcer of the REST service, for oslo.policy's commands.

    Options are read from where the service reads them.
    """
    named = os.environ.get('OS_VSCHED_CONFIG_FILES')
    conf = cfg.ConfigOpts()
    conf(
        [],
        project='vsched',
        prog='vsched-api',
        default_config_files=named.split(':') if named else None,
    )
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(list_rules())
    # oslopolicy-validator opens the file that the global options name.
    tool = cfg.CONF  # noqa: TID251
    opts.set_defaults(tool)
    name = conf.oslo_policy.policy_file
    tool.set_override(
        'policy_file', conf.find_file(name) or name, 'oslo_policy'
    )
    return enforcer


def list_rules() -> list[policy.RuleDefault]:
    """Every rule with its default, for oslopolicy-sample-generator."""
    return [
        rule
        for module in (base, *nouns.modules(__name__))
        for rule in module.RULES
    ]
