# SPDX-License-Identifier: Apache-2.0

"""The agent's own metrics, for Prometheus."""
