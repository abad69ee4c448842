# SPDX-License-Identifier: Apache-2.0

"""Evaluations, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import evaluated_overrides
from vsched_api.tests.suites import evaluations


class TestEvaluations(evaluations.Evaluations, base.TestCase):
    """The suite, on a file."""


class TestEvaluatedOverrides(
    evaluated_overrides.EvaluatedOverrides, base.TestCase
):
    """The suite, on a file."""
