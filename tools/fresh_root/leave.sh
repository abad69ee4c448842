#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Ends the services of guide.sh in the root of tools/fresh-root.sh, and purges
# the packages.

set -euo pipefail
trap 'echo "$0: line $LINENO failed" >&2' ERR

# shellcheck disable=SC2046  # numbers
kill $(pgrep -u vsched,vsched-agent)
# What the guide has an administrator write.
rm -r /etc/systemd/system/vsched-api.service.d
/root/purge.sh
