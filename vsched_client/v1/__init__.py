# SPDX-License-Identifier: Apache-2.0

"""Version 1 of the API: one module for each noun.

Answers are dictionaries as the API sends them. The classes that name their
keys are for type checkers; a newer service may send more keys.
"""
