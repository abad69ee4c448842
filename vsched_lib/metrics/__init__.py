# SPDX-License-Identifier: Apache-2.0

"""What metrics are, and how a process without a REST service serves them."""
