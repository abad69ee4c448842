# SPDX-License-Identifier: Apache-2.0

import hypothesis

# Machines that run tests are shared: how long an example takes says nothing
# about the code.
hypothesis.settings.register_profile(
    'vsched',
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile('vsched')
