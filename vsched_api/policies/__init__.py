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

"""Who may do what: one module for each noun, one rule for each operation."""

from oslo_policy import policy

from vsched_api.policies import balloons
from vsched_api.policies import base
from vsched_api.policies import evaluations
from vsched_api.policies import events
from vsched_api.policies import health
from vsched_api.policies import hosts
from vsched_api.policies import instances
from vsched_api.policies import jobs
from vsched_api.policies import metrics
from vsched_api.policies import profiles
from vsched_api.policies import reservations
from vsched_api.policies import snapshot
from vsched_api.policies import usage
from vsched_api.policies import versions

_MODULES = (base, versions, health, metrics, hosts, profiles, instances,
            reservations, balloons, jobs, events, usage, snapshot,
            evaluations)


def list_rules() -> list[policy.RuleDefault]:
    """Every rule with its default, for oslopolicy-sample-generator."""
    return [rule for module in _MODULES for rule in module.RULES]
