# SPDX-License-Identifier: Apache-2.0

"""What vsched achieves, measured: ``python -m benchmarks --list``.

Not packaged. Each benchmark is one module with an ``ABOUT``, a ``run`` and,
if a picture says more, a ``draw``; :mod:`benchmarks.catalogue` lists them
and :mod:`benchmarks.frame` says what they are.
"""
