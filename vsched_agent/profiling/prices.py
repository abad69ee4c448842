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

"""What the host's overhead profile means for an instance that does I/O."""

from collections.abc import Callable
from collections.abc import Mapping
from fractions import Fraction
import typing as ty

from vsched_lib.contract import certification
from vsched_lib.contract import errors
from vsched_lib.contract import profiles
from vsched_lib.model import overhead


class Prices:
    """Says what a flavor's I/O takes of the host.

    :param profile: the host's newest one by the benchmark, if any.
    :param host: facts of the kernel now, as in a profile; a profile with
        others is about another host.
    :param refuse: whether I/O that has no price is refused; else it is
        taken to cost nothing.
    """

    def __init__(self, profile: Callable[[], profiles.OverheadProfile | None],
                 host: Mapping[str, ty.Any], refuse: bool = False) -> None:
        self._profile = profile
        self._host = host
        self._refuse = refuse

    def usable(self) -> profiles.OverheadProfile | None:
        """The profile that prices are taken from."""
        return None if self.problem() else self._profile()

    def problem(self) -> str | None:
        """Why there are no prices; None when there are."""
        found = self._profile()
        if found is None:
            return 'what I/O costs was not measured on this host'
        differ = certification.differences(found, self._host)
        if differ:
            return 'overhead profile %d was measured with another %s' % (
                found.version, ', '.join(differ))
        if not found.good:
            return ('overhead profile %d explains only %.0f %% of what was '
                    'measured' % (found.version, 100 * found.r2))
        return None

    def extra_mcpu(self, rates: overhead.Rates, charged: bool,
                   guest: Fraction) -> int:
        """What an instance takes on top of what its vCPUs are promised.

        :param rates: the I/O that its flavor says it does.
        :param charged: the host's work comes out of its own promise.
        :param guest: what is promised, in CPUs.
        :raises errors.Refused: when its I/O would cost more than it is
            promised, and when it has no price and policy says so.
        """
        if rates == overhead.Rates():
            return 0
        found = self.usable()
        if found is None:
            if self._refuse:
                raise errors.Refused(
                    self.problem() or '', errors.Code.DOES_NOT_FIT)
            return 0
        cost_mcpu = overhead.overhead_mcpu(rates, found.fit)
        own_mcpu = overhead.demand_mcpu(guest, 0, False)
        demand_mcpu = overhead.demand_mcpu(guest, cost_mcpu, charged)
        if charged and cost_mcpu > own_mcpu:
            raise errors.Refused(
                'its I/O would cost %d mcpu here, more than the %d mcpu it '
                'is promised and pays for it with' % (cost_mcpu, own_mcpu),
                errors.Code.DOES_NOT_FIT, {
                    'overhead_mcpu': cost_mcpu, 'promised_mcpu': own_mcpu,
                    'profile_version': found.version})
        return demand_mcpu - own_mcpu
