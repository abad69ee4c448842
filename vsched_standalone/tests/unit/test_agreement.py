# SPDX-License-Identifier: Apache-2.0

"""Agent, filters and evaluations say the same of the same host."""

from fractions import Fraction
import json
import os
import tempfile

from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
from oslotest import base

from nova_filters import cache
from nova_filters import flavor_request
from nova_filters import hosts
from nova_filters import judging
from nova_filters.tests import fakes as nova_fakes
from vsched_agent.profiling import io_prices
from vsched_agent.profiling import margins
from vsched_agent.profiling import measurements
from vsched_agent.reservations import admission
from vsched_agent.reservations import desired
from vsched_agent.reservations import enforcer
from vsched_agent.state import store
from vsched_agent.tests import fakes
from vsched_agent.tests import profiles
from vsched_api.operations import errors as api_errors
from vsched_api.operations import evaluations
from vsched_api.operations import override_fields
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.contract import policy as policies
from vsched_lib.contract import snapshot
from vsched_lib.model import fit
from vsched_lib.model import reservation
from vsched_lib.model import room
from vsched_lib.tests import overhead_profiles

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS


def legible(specs):
    """Whether a flavor can say this."""
    try:
        extra_specs.parse(specs)
    except errors.InvalidExtraSpecs:
        return False
    return True


#: What flavors may say, from little to more than any host can give.
SPECS = (
    st.fixed_dictionaries(
        {
            'cpu_runtime_us': st.sampled_from(
                (10, 333, 1_000, 2_000, 3_333, 9_000, 10_000)
            ),
            'cpu_period_us': st.sampled_from((10_000, 20_000)),
        },
        optional={
            'backend': st.sampled_from(('deadline', 'cfs')),
            'max_alloc_error_pct': st.sampled_from(('0.5', '2', '10')),
            'io_charging': st.sampled_from(
                ('auto', 'none', 'charge', 'overprovision')
            ),
            'net_rx_pps': st.integers(0, 40_000),
            'disk_write_iops': st.integers(0, 2_000),
        },
    )
    .map(
        lambda specs: {
            'vsched:' + key: str(value) for key, value in specs.items()
        }
    )
    .filter(legible)
)

#: The errors of a share, or that there is none.
ERRORS_PPM = st.none() | st.sampled_from((0, -9_000, -40_000, -300_000))

#: The prices of a host as a part of those of a usual one.
PRICES = st.none() | st.sampled_from((0.1, 1.0, 5.0))

POLICIES = st.builds(
    fit.Policy,
    st.sampled_from((0, 50_000, 250_000)),
    st.sampled_from((100_000, 500_000, 1_000_000)),
    st.booleans(),
)

USABLE = st.sampled_from(
    (frozenset((DEADLINE, CFS)), frozenset((CFS,)), frozenset())
)


class Host:
    """One host, as its agent knows it and as schedulers are told of it."""

    def __init__(self, folder, usable, capacity, errors_ppm, price, policy):
        self.backends = {
            DEADLINE: fakes.FakeBackend(DEADLINE),
            CFS: fakes.FakeBackend(CFS),
        }
        for name, backend in self.backends.items():
            backend.usable = name in usable
        self.capacity = fakes.FakeCapacity(capacity)
        self.errors = (
            None
            if errors_ppm is None
            else profiles.profile(
                *(
                    profiles.point([lower_ppm] * 200, share_pct=share_pct)
                    for share_pct, lower_ppm in errors_ppm.items()
                )
            )
        )
        self.prices = (
            None
            if price is None
            else overhead_profiles.profile(
                {
                    term: cost_ns * price
                    for term, cost_ns in overhead_profiles.PRICES.items()
                },
                **profiles.FACTS,
            )
        )
        self.policy = policy
        self.journal = store.Journal(os.path.join(folder, 'agent.sqlite'))
        self.enforcer = enforcer.Enforcer(
            self.backends,
            lambda name: self.backends[name].supports(),
            self.capacity,
            self.journal,
            tick_us=4_000,
            measurements=measurements.HostMeasurements(
                margins.Margins(lambda: self.errors, profiles.FACTS),
                io_prices.Prices(lambda: self.prices, profiles.FACTS),
                policy,
            ),
        )

    def hold(self, number, specs, vcpus):
        """What the agent says: the code of its refusal, or None."""
        flavor = extra_specs.parse(specs)
        try:
            self.enforcer.hold(
                fakes.domain(number, vcpus=vcpus),
                flavor.reservation,
                flavor.ask(vcpus),
            )
        except errors.Refused as refusal:
            return refusal.code
        return None

    def told(self):
        """What schedulers are told, after a trip through JSON."""
        current = self.capacity.current()
        info = messages.HostInfo(
            '1',
            '6.18.0',
            'b',
            'fake',
            current.cpus,
            4_000,
            current.capacity_mcpu,
            self.enforcer.admitted_mcpu(),
            0,
            tuple(
                messages.BackendInfo(str(name), backend.usable)
                for name, backend in self.backends.items()
            ),
            policy=policies.HostPolicy(
                0.8,
                self.policy.most_margin_ppm,
                self.policy.most_overhead_ppm,
                self.policy.refuse_unpriced,
            ),
        )
        return snapshot.Host.from_dict(
            json.loads(
                json.dumps(
                    snapshot.Host(
                        'node1',
                        1,
                        info.admitted_mcpu,
                        snapshot.facts(info),
                        ()
                        if self.errors is None
                        else snapshot.certify(self.errors, 0.8),
                        None
                        if self.prices is None
                        else {
                            one.term: one.cost_ns for one in self.prices.prices
                        },
                    ).to_dict()
                )
            )
        )


def filtered(host, specs, vcpus):
    """The cause for which a filter refuses the host; None when none does."""
    known = cache.Known(hosts.NOTHING.after(nova_fakes.answer(host), 'a'), 0.0)
    for judge, missing in (
        (judging.reservation, False),
        (judging.allocation_error, False),
        (judging.io_overhead, True),
    ):
        passed, refusals = judging.filter_hosts(
            [nova_fakes.State()],
            flavor_request.parse(specs, vcpus),
            known,
            False,
            judging.Rules(judge, True, missing),
        )
        if not passed:
            return str(refusals)
    return None


class TestAgreement(base.BaseTestCase):
    """Whoever is asked, and whatever the host is."""

    @settings(max_examples=100, deadline=None)
    @given(
        st.lists(st.tuples(SPECS, st.integers(1, 3)), max_size=4),
        SPECS,
        st.integers(1, 3),
        USABLE,
        st.fractions(0, 2, max_denominator=1000),
        st.none()
        | st.fixed_dictionaries(
            {
                share_pct: ERRORS_PPM.filter(lambda one: one is not None)
                for share_pct in (5, 20, 50)
            }
        ),
        PRICES,
        POLICIES,
    )
    def test_one_word(
        self, before, specs, vcpus, usable, capacity, errors_ppm, price, policy
    ):
        with tempfile.TemporaryDirectory() as folder:
            host = Host(folder, usable, capacity, errors_ppm, price, policy)
            self.addCleanup(host.journal.close)
            for number, (other, size) in enumerate(before, 2):
                host.hold(number, other, size)
            told = host.told()
            verdict = room.judge(
                extra_specs.parse(specs).ask(vcpus),
                told.fit(),
                told.admitted_mcpu,
            )
            found = filtered(told, specs, vcpus)
            code = host.hold(1, specs, vcpus)
            host.journal.close()
        self.assertEqual(verdict.fits, code is None, (code, verdict))
        self.assertEqual(found is None, code is None, (code, found))
        if code is not None:
            self.assertEqual(
                admission.CODES[
                    next(
                        one.cause
                        for one in verdict.problems
                        if not one.tolerated
                    )
                ],
                code,
            )

    def test_the_last_free_mcpu(self):
        # Three times two thirds of a CPU less a thousandth: whole numbers
        # are what everybody is told.
        specs = {
            'vsched:cpu_runtime_us': '6333',
            'vsched:cpu_period_us': '10000',
        }
        with tempfile.TemporaryDirectory() as folder:
            host = Host(
                folder,
                {DEADLINE, CFS},
                Fraction(19, 10),
                None,
                None,
                fit.DEFAULT,
            )
            self.addCleanup(host.journal.close)
            for number in (1, 2):
                self.assertIsNone(host.hold(number, specs, 1))
            told = host.told()
            self.assertEqual(1_267, told.admitted_mcpu)
            self.assertIn(
                '634 mcpu needed, 633 of 1900', filtered(told, specs, 1)
            )
            self.assertEqual(errors.Code.DOES_NOT_FIT, host.hold(3, specs, 1))
            host.journal.close()


#: What operators may set over a flavor, as REST takes it.
OVERRIDES = st.fixed_dictionaries(
    {},
    optional={
        'runtime_us': st.sampled_from((1_000, 9_000)),
        'mode': st.sampled_from(('capped', 'work_conserving')),
        'backend': st.sampled_from(('deadline', 'cfs', None)),
        'io_charging': st.sampled_from(('auto', 'none', 'charge', None)),
        'max_alloc_error_pct': st.sampled_from((0.5, 10, None)),
        'weight': st.sampled_from((1, None)),
        'balloon': st.sampled_from(('off', 'auto')),
    },
).filter(bool)


class TestOverrides(base.BaseTestCase):
    """Evaluations ask for what the agent makes of an override."""

    @settings(max_examples=300, deadline=None)
    @given(st.just({}) | SPECS, OVERRIDES)
    def test_one_word(self, specs, fields):
        flavor = extra_specs.parse(specs).reservation
        base_fields = (
            {}
            if flavor is None
            else {
                name: getattr(flavor, name)
                for name in override_fields.RESERVATION
            }
        )
        try:
            found = evaluations.overridden(specs, fields, 2)
        except api_errors.Invalid:
            # REST refuses such an override as well.
            self.assertTrue('runtime_us' not in {**base_fields, **fields})
            return
        except errors.InvalidExtraSpecs:
            found = None
        promise = override_fields.reservation_of(
            {
                **override_fields.DEFAULTS,
                **base_fields,
                **{
                    name: fields[name]
                    for name in override_fields.RESERVATION
                    if name in fields
                },
            }
        )
        told = desired.of(
            fakes.domain(
                1,
                vcpus=2,
                **{
                    key.removeprefix('vsched:'): text
                    for key, text in specs.items()
                },
            ),
            collector_replies.Override(
                fakes.domain(1).uuid,
                1,
                promise.runtime_us,
                promise.period_us,
                str(promise.mode),
                promise.backend and str(promise.backend),
                specs=override_fields.specs_of(fields, None, 2),
            ),
        )
        if found is None:
            # Refused by the agent at once, or by the backend.
            self.assertTrue(
                told.problem is not None or promise.problems(promise.backend)
            )
            return
        self.assertIsNone(told.problem)
        ask = found.ask(2)
        self.assertEqual(
            (ask.promise, ask.bound_ppm, ask.charged),
            (told.reserved, told.ask.bound_ppm, told.ask.charged),
        )
        if ask.charged is not None:
            self.assertEqual(ask.rates, told.ask.rates)
