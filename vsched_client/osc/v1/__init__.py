# SPDX-License-Identifier: Apache-2.0

"""The commands for version 1 of the API: one module for each noun."""
