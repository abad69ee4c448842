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

"""What needs power over the host, in helpers with one capability each."""

from oslo_config import cfg

from vsched_agent.privileged import budgets
from vsched_agent.privileged import cgroup
from vsched_agent.privileged import clocks
from vsched_agent.privileged import links
from vsched_agent.privileged import sched
from vsched_agent.privileged import turns


_CONTEXTS = (budgets.budgets_pctxt, cgroup.cgroup_pctxt, clocks.perf_pctxt,
             links.links_pctxt, sched.sched_pctxt, turns.turns_pctxt)

#: The sections of the configuration that are about helpers.
SECTIONS = tuple(context.cfg_section for context in _CONTEXTS)


def use(conf: cfg.ConfigOpts) -> None:
    """Let the helpers take their options from here.

    :param conf: the service's own; oslo.privsep would read the global one.
    """
    for context in _CONTEXTS:
        context.use(conf)
