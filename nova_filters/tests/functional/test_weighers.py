# SPDX-License-Identifier: Apache-2.0

"""The weighers, called by Nova's own scheduler code."""

import uuid

from nova_filters.tests import fakes
from nova_filters.tests.functional import nova_case

if nova_case.MISSING is None:
    from nova import objects
    from nova.scheduler import weights as nova_weights

    from nova_filters import weighers


class TestWeighers(nova_case.NovaCase):
    """With HostState, RequestSpec and the weight handler of Nova."""

    def order(self, kind, states, **specs):
        spec = nova_case.request(**{'cpu_runtime_us': '5000', **specs})
        return [
            one.obj.host
            for one in nova_weights.HostWeightHandler().get_weighed_objects(
                [kind()], states, spec
            )
        ]

    def test_nova_finds_them(self):
        found = nova_weights.HostWeightHandler().get_matching_classes(
            [
                'nova.scheduler.weights.all_weighers',
                'nova_filters.weighers.all_weighers',
            ]
        )
        self.assertEqual(set(), set(weighers.all_weighers()) - set(found))

    def test_each_by_its_own_value(self):
        self.set_known(
            fakes.host(
                'a',
                1,
                admitted_mcpu=900,
                certificates=(fakes.certificate(-1_000),),
                prices_ns={'net_rx': 2e4},
            ),
            fakes.host(
                'b',
                2,
                certificates=(fakes.certificate(-90_000),),
                prices_ns={'net_rx': 3e4},
            ),
            fakes.host(
                'c',
                3,
                admitted_mcpu=1_500,
                certificates=(fakes.certificate(-2_000),),
                prices_ns={'net_rx': 1e4},
            ),
        )
        states = [nova_case.state(name) for name in 'abc']
        for kind, expected in (
            (weighers.VschedHeadroomWeigher, 'bac'),
            (weighers.VschedAllocationErrorWeigher, 'acb'),
            (weighers.VschedIoOverheadWeigher, 'cab'),
        ):
            self.assertEqual(
                list(expected), self.order(kind, states, net_rx_pps='1000')
            )

    def test_neighbours(self):
        def instances(*classes):
            made = [objects.Instance(uuid=str(uuid.uuid4())) for _ in classes]
            for one, name in zip(made, classes, strict=True):
                if name is not None:
                    one.flavor = objects.Flavor(
                        extra_specs={'vsched:workload_class': name}
                    )
            return {one.uuid: one for one in made}

        states = [
            nova_case.state('a', instances=instances('compute', 'compute')),
            # Of one that came without its flavor nothing is known.
            nova_case.state('b', instances=instances(None)),
            nova_case.state('c', instances=instances('disk')),
        ]
        self.assertEqual(
            ['b', 'c', 'a'],
            self.order(
                weighers.VschedInterferenceWeigher,
                states,
                workload_class='web',
            ),
        )

    def test_an_aggregate_goes_before_the_option(self):
        self.set_known(
            fakes.host('a', 1), fakes.host('b', 2, admitted_mcpu=900)
        )
        aggregate = objects.Aggregate(
            id=1, metadata={'vsched_headroom_weight_multiplier': '-1.5'}
        )
        states = [
            nova_case.state(name, aggregates=[aggregate]) for name in 'ab'
        ]
        kind = weighers.VschedHeadroomWeigher
        self.assertEqual(-1.5, kind().weight_multiplier(states[0]))
        self.assertEqual(['b', 'a'], self.order(kind, states))
        self.assertEqual(1.0, kind().weight_multiplier(nova_case.state()))

    def test_flavors_that_ask_for_nothing(self):
        self.set_known(
            fakes.host('a', 1), fakes.host('b', 2, admitted_mcpu=900)
        )
        states = [nova_case.state('b'), nova_case.state('a')]
        for kind in weighers.all_weighers():
            found = nova_weights.HostWeightHandler().get_weighed_objects(
                [kind()], states, nova_case.request()
            )
            self.assertEqual([0, 0], [one.weight for one in found])
