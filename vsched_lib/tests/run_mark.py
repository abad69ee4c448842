# SPDX-License-Identifier: Apache-2.0

"""The run of ``tools/test.sh`` that a test is part of."""

import os

#: What a run has in the environment of all that it starts.
_NAME = 'VSCHED_TEST_RUN'


def variables() -> dict[str, str]:
    """Variables for the environment of a process that gets no other ones.

    By them ``tools/test.sh`` finds and ends what an interrupted test has
    left; none where tests are run without it.
    """
    return {_NAME: os.environ[_NAME]} if _NAME in os.environ else {}
