# SPDX-License-Identifier: Apache-2.0

"""A demonstration without virtual machines: REST API, collector, fleet.

The API, the collector and the database are those of production. The agents
are simulated: they send the messages of :mod:`vsched_lib.contract` with
figures that are computed from a seed and from the time. No kernel, hypervisor
or privilege is used.
"""
