# SPDX-License-Identifier: Apache-2.0

"""Runs of benchmarks, for their tests."""


def finish(steps):
    """Run a benchmark to its end; return its variants and its metrics."""
    variants = []
    while True:
        try:
            variants.append(next(steps))
        except StopIteration as end:
            return variants, end.value
