# SPDX-License-Identifier: Apache-2.0

# Generated tests have their settings there.
from vsched_lib import tests  # noqa: F401
