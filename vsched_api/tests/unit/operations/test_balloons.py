# SPDX-License-Identifier: Apache-2.0

"""Balloons told and ordered of, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import balloons


class TestBalloons(balloons.Balloons, base.TestCase):
    """The suite, on a file."""
