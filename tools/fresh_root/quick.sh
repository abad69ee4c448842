#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What tools/fresh-root.sh --quick does in its root.

set -euo pipefail
trap 'echo "$0: line $LINENO failed" >&2' ERR

cd /root/packages
apt-get -qq install ./*.deb >/root/install.log 2>&1 || {
    tail -n 20 /root/install.log >&2
    exit 1
}

# Commands leave out what makes a version a development one.
version=$(dpkg-query -W -f '${Version}' vsched)
version=${version%%~*}
for command in agent collector manage demo status; do
    found=$("vsched-$command" --version)
    [[ $found == "$version" ]] || {
        echo "vsched-$command is $found, its package $version" >&2
        exit 1
    }
done
echo "all commands run, and are $version"

SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no \
    /usr/lib/systemd/system/vsched-{agent,api,collector}.service \
    /usr/lib/systemd/system/vsched-helper-*.socket >/root/verify.log 2>&1 || {
    cat /root/verify.log >&2
    exit 1
}
if grep -i vsched /root/verify.log; then
    echo 'the units have problems' >&2
    exit 1
fi
for unit in agent api collector; do
    program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' \
        /usr/lib/systemd/system/vsched-$unit.service)
    [[ -x $program ]] || {
        echo "vsched-$unit.service starts $program, which is not there" >&2
        exit 1
    }
    if systemctl is-enabled --quiet "vsched-$unit.service"; then
        echo "vsched-$unit.service is enabled by its installation" >&2
        exit 1
    fi
done
echo 'the units are valid'

[[ $(stat -c '%U:%G %a' /etc/vsched/vsched.conf) == 'root:vsched 640' ]]
[[ $(stat -c '%U:%G %a' /etc/vsched/vsched-agent.conf) == \
    'root:vsched-agent 640' ]]
[[ $(stat -c '%U:%G %a' /var/lib/vsched) == \
    'vsched-agent:vsched-agent 750' ]]
[[ -s /var/cache/vsched/guest/vmlinux ]]
# The agent reads its own file, and not that with the controller's passwords.
runuser -u vsched-agent -- vsched-agent \
    --config-file /etc/vsched/vsched-agent.conf --version >/dev/null

# A unit that an administrator has enabled is disabled by the removal.
systemctl --quiet enable vsched-agent.service vsched-api.service
/root/purge.sh
