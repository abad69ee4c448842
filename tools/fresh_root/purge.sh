#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Purges the packages in the root of tools/fresh-root.sh, and fails if a file
# or a unit is left. The users stay.

set -euo pipefail
trap 'echo "$0: line $LINENO failed" >&2' ERR

apt-get -qq purge vsched vsched-common vsched-api vsched-collector \
    vsched-agent vsched-guest vsched-client >/root/purge.log 2>&1 || {
    tail -n 20 /root/purge.log >&2
    exit 1
}

left=$(find / -xdev \( -path /root -o -path /proc -o -path /sys \
    -o -path /tmp -o -path /var/log/apt -o -path /var/lib/mysql \
    -o -path /var/lib/postgresql -o -path /var/lib/rabbitmq \) -prune \
    -o -iname '*vsched*' -print)
# Memory that the search above does not enter.
left+=$(find /run -iname '*vsched*' -print)
if [[ -n $left ]]; then
    printf 'left behind:\n%s\n' "$left" >&2
    exit 1
fi
if dpkg-query -W -f '${db:Status-Status} ${Package}\n' 'vsched*' 2>/dev/null |
    grep -v '^not-installed'; then
    echo 'packages are left' >&2
    exit 1
fi
for user in vsched vsched-agent; do
    getent passwd "$user" >/dev/null || {
        echo "the user $user was deleted, and its id may be used again" >&2
        exit 1
    }
done
echo 'purged: nothing is left but the users'
