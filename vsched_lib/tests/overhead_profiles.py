# SPDX-License-Identifier: Apache-2.0

"""Made-up overhead profiles that look like measured ones."""

from vsched_lib.contract import profiles

#: Nanoseconds by term.
PRICES = {
    'net_rx': 12_000.0,
    'net_tx': 25_000.0,
    'disk_read': 40_000.0,
    'disk_write': 42_000.0,
    'wakeups': 20_000.0,
    'idle_s': 4e6,
}


def point(experiment='net-rx', **changes):
    """A point of one load."""
    return profiles.OverheadPoint(
        **{
            'experiment': experiment,
            'rate': 1000,
            'burst': 1,
            'size_bytes': 64,
            'interval_us': 2_000_000,
            'net_rx': 2000,
            'net_tx': 0,
            'disk_read': 0,
            'disk_write': 0,
            'wakeups': 2100,
            'direct_us': 75_000,
            'shared_us': 0,
            'predicted_us': 74_000,
            **changes,
        }
    )


def profile(prices=PRICES, **changes):
    """A profile with these prices and a few points."""
    return profiles.OverheadProfile(
        **{
            'uuid': '5ab0c8de-5d3e-4f0e-8c2e-3f8a2a0a6f12',
            'version': 3,
            'source': profiles.ProfileSource.BENCHMARK,
            'started_at': 1_760_000_000.0,
            'finished_at': 1_760_000_300.0,
            'kernel': '6.1.0-18-amd64',
            'tick_us': 4_000,
            'cpus': 2,
            'load': 0.3,
            'quick': False,
            'complete': True,
            'good': True,
            'r2': 0.97,
            'residual_ns': 2e6,
            'n': 48,
            'prices': tuple(
                profiles.OverheadPrice(
                    term, cost_ns, None if term == 'idle_s' else 250.0
                )
                for term, cost_ns in prices.items()
            ),
            'points': (point(), point('net-tx', net_rx=0, net_tx=2000)),
            **changes,
        }
    )
