# SPDX-License-Identifier: Apache-2.0

"""The routes: one module for each noun.

A handler asks whether it may, checks what the request says, lets an
operation do the work, and shows the result; it has no rules of its own.
"""
