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

"""What is known of all hosts at one moment.

Never changed once it is made: who has got hold of one may look at it for as
long as it likes, without a lock.
"""

from collections.abc import Mapping
import logging
import typing as ty

from nova_filters import asking
from vsched_lib.contract import snapshot
from vsched_lib.contract import wire
from vsched_lib.model import fit
from vsched_lib.model import interference

LOG = logging.getLogger(__name__)

#: For how many flavors a host remembers what they take of it.
MAX_NEEDS = 512


class Host:
    """One host, and what flavors take of it.

    :param told: what was told of it.
    :param model: the same as the model sees it.
    :param needs: by flavor, found out already of the same facts.
    """

    __slots__ = ('_needs', 'capacity_mcpu', 'free_mcpu', 'model', 'told')

    def __init__(self, told: snapshot.Host, model: fit.Host,
                 needs: dict[asking.Question, fit.Need]) -> None:
        self.told = told
        self.model = model
        self.capacity_mcpu = model.capacity_mcpu
        self.free_mcpu = model.capacity_mcpu - told.admitted_mcpu
        # Two threads may both add to it: they add the same.
        self._needs = needs

    def need(self, question: asking.Question) -> fit.Need:
        """What an instance takes of this host."""
        found = self._needs.get(question)
        if found is None:
            found = question.asking.need(self.model)
            if len(self._needs) >= MAX_NEEDS:
                self._needs.clear()
            self._needs[question] = found
        return found

    def changed(self, told: snapshot.Host, policy: fit.Policy) -> 'Host':
        """The host after a change; what it still is, is kept.

        :param policy: what counts if its agent does not tell.
        """
        before = self.told
        if (told.facts, told.certificates, told.prices_ns) == (
                before.facts, before.certificates, before.prices_ns) and (
                told.facts.policy is not None or
                policy == self.model.policy):
            # As when an instance came or went, which is most of the time.
            return Host(told, self.model, self._needs)
        # Who changes it has the time to find out anew what is asked of it.
        model = told.fit(policy)
        return Host(told, model, {
            question: question.asking.need(model)
            for question in list(self._needs)})


class Hosts(ty.NamedTuple):
    """All hosts.

    :param version: None before anything was heard.
    :param tag: of the answer that this was made of.
    :param down: names of those whose agents do not report.
    :param neighbours: what is known of how they disturb each other.
    """

    version: int | None
    tag: str | None
    by_name: Mapping[str, Host]
    down: frozenset[str]
    neighbours: interference.Interference

    def after(self, news: snapshot.Snapshot, tag: str | None) -> 'Hosts':
        """What is known after an answer.

        :param tag: of that answer.
        """
        by_name = {} if news.full else dict(self.by_name)
        policy = news.policy
        for told in news.hosts:
            before = self.by_name.get(told.name)
            try:
                by_name[told.name] = (
                    Host(told, told.fit(policy), {}) if before is None
                    else before.changed(told, policy))
            except wire.MalformedMessage as problem:
                # Of one host nothing is known; that is no reason to know
                # nothing of the others.
                LOG.error('vsched: host %s: %s', told.name, problem)
                by_name.pop(told.name, None)
        for name in news.removed:
            by_name.pop(name, None)
        return Hosts(news.version, tag, by_name, frozenset(news.down),
                     news.interference)


NOTHING = Hosts(None, None, {}, frozenset(), interference.Interference())
