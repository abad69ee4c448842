# SPDX-License-Identifier: Apache-2.0

"""Rules that the others are made of.

Hosts belong to the operator, and so does what instances are promised. A
project may read what concerns its own instances, and change nothing.
"""

from oslo_policy import policy

ADMIN = 'rule:vsched:admin'
READER = 'rule:vsched:reader'
#: Those, and readers of the project that the instance concerned belongs to.
#: Who passes only with a project gets only its instances from lists.
PROJECT_READER = 'rule:vsched:reader or rule:vsched:project_reader'
ANYONE = '@'

#: A reader's token is for the system, an administrator's or a service's may
#: be for a project as well.
SCOPES = ['system', 'project']

RULES = [
    policy.RuleDefault(
        'vsched:admin',
        'role:admin',
        description='Who may change what instances are promised.',
    ),
    policy.RuleDefault(
        'vsched:admin_or_service',
        'rule:vsched:admin or role:service',
        description='Operators, and other services such as a scheduler.',
    ),
    policy.RuleDefault(
        'vsched:reader',
        'rule:vsched:admin_or_service or (role:reader and system_scope:all)',
        description='Who may see everything and change nothing.',
    ),
    policy.RuleDefault(
        'vsched:project_reader',
        'role:reader and project_id:%(project_id)s',
        description='Who may see what concerns the instances of its own '
        'project.',
    ),
]


def documented(
    name: str, check: str, description: str, *operations: tuple[str, str]
) -> policy.DocumentedRuleDefault:
    """A rule for one operation.

    :param operations: (method, path) pairs.
    """
    return policy.DocumentedRuleDefault(
        name=name,
        check_str=check,
        description=description,
        operations=[
            {'method': method, 'path': path} for method, path in operations
        ],
        scope_types=None if check == ANYONE else SCOPES,
    )


def part(name: str, check: str, description: str) -> policy.RuleDefault:
    """A rule for a part of the answers to other operations."""
    return policy.RuleDefault(
        name=name, check_str=check, description=description, scope_types=SCOPES
    )
