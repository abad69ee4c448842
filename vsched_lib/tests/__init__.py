# SPDX-License-Identifier: Apache-2.0

import hypothesis

from vsched_lib.tests import run_mark

# Machines that run tests are shared: how long an example takes says nothing
# about the code. A run of tools/test.sh has the same examples each time: what
# it finds is due to what has changed. New ones are looked for by hand.
hypothesis.settings.register_profile(
    'vsched',
    deadline=None,
    derandomize=bool(run_mark.variables()),
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile('vsched')
