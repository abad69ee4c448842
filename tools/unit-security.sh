#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the shipped systemd units: "systemd-analyze verify", then the exposure
# level of each service by "systemd-analyze security", without a running
# systemd. Prints "UNIT LEVEL" a line.
set -o errexit
set -o nounset
set -o pipefail

units=$(dirname "$0")/../etc/vsched/systemd
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The commands need not be installed where this is run.
for unit in "$units"/*; do
    sed -E 's,^ExecStart=/usr/bin/[a-z0-9-]+,ExecStart=/usr/bin/true,' \
        "$unit" >"$work/$(basename "$unit")"
done
cd "$work"
# Of a template, one that could be.
for unit in *@.service; do
    cp "$unit" "${unit/@/@1}"
done
said=$(systemd-analyze verify --recursive-errors=no --man=no \
    ./*@1.service ./vsched-*[a-z].service ./*.socket 2>&1 |
    grep -F "$work" || true)
if [ -n "$said" ]; then
    echo "$said" >&2
    exit 1
fi
for unit in vsched-*[a-z@].service; do
    level=$(systemd-analyze security --offline=true --no-pager "./$unit" |
        sed -n 's/.*Overall exposure level for [^:]*: \([0-9.]*\) .*/\1/p')
    echo "$unit ${level:?no exposure level}"
done
