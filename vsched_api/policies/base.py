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

"""Rules that the others are made of.

Hosts, instances and their CPU time belong to the operator, not to the
projects whose instances they are: nothing here is for an ordinary user.
"""

from oslo_policy import policy

ADMIN = 'rule:vsched:admin'
ADMIN_OR_SERVICE = 'rule:vsched:admin_or_service'
READER = 'rule:vsched:reader'
ANYONE = '@'

#: A reader's token is for the system, an administrator's or a service's may
#: be for a project as well.
SCOPES = ['system', 'project']

RULES = [
    policy.RuleDefault(
        'vsched:admin', 'role:admin',
        description='Who may change what instances are promised.'),
    policy.RuleDefault(
        'vsched:admin_or_service', 'rule:vsched:admin or role:service',
        description='Operators, and other services such as a scheduler.'),
    policy.RuleDefault(
        'vsched:reader',
        'rule:vsched:admin_or_service or '
        '(role:reader and system_scope:all)',
        description='Who may see everything and change nothing.'),
]


def documented(name: str, check: str, description: str,
               *operations: tuple[str, str]) -> policy.DocumentedRuleDefault:
    """A rule for one operation.

    :param operations: (method, path) pairs.
    """
    return policy.DocumentedRuleDefault(
        name=name, check_str=check, description=description,
        operations=[{'method': method, 'path': path}
                    for method, path in operations],
        scope_types=None if check == ANYONE else SCOPES)
