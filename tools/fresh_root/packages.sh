#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The part "packages" of tools/fresh-root.sh, in its root.

set -euo pipefail
trap 'echo "$0: line $LINENO failed" >&2' ERR
# shellcheck source=tools/fresh_root/units.sh
. /root/units.sh

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

# Debian's openstack with the plugin, over simulated hosts.
vsched-demo --hosts 3 --port 0 >/root/demo.log 2>&1 &
demo=$!
trap 'kill "$demo" 2>/dev/null || true' EXIT
for ((second = 0; second < 60; second++)); do
    ! grep -q 'hosts report' /root/demo.log || break
    sleep 1
done
export OS_AUTH_TYPE=none
OS_ENDPOINT=$(sed -n 's/^[^ ]* \(http[^ ]*\) .*/\1/p' /root/demo.log)
export OS_ENDPOINT
openstack cpu host list -f value -c name >/root/openstack.log 2>&1 || {
    cat /root/demo.log /root/openstack.log >&2
    exit 1
}
[[ $(grep -c '^demo-0[123]$' /root/openstack.log) == 3 ]]
# As people see it, with the cells of the oldest cliff.
openstack cpu reservation list --sort-column Share >/root/openstack.log 2>&1
grep -q '| applied ' /root/openstack.log
kill "$demo"
wait "$demo" || [[ $? == 143 ]]
trap - EXIT
unset OS_AUTH_TYPE OS_ENDPOINT
echo "openstack has the commands of $(dpkg-query -W -f \
    'python3-openstackclient ${Version}' python3-openstackclient)"

verify_units /usr/lib/systemd/system
for unit in agent api collector; do
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
