# SPDX-License-Identifier: Apache-2.0

"""The routes: one module for each noun.

A handler enforces its policy, validates the request, lets an
operation do the work, and shows the result; it has no rules of its own.
"""
