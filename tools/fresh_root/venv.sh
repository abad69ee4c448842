#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What tools/fresh-root.sh does in its root for those who install vsched by
# pip: the commands of doc/source/install/packages.rst. No package
# of ours is there then.

set -euo pipefail
trap 'echo "$0: line $LINENO failed" >&2' ERR
# shellcheck source=tools/fresh_root/units.sh
. /root/units.sh
cd /root

# Of the wheels that were made for this root, and of no other ones.
export PIP_NO_INDEX=1 PIP_FIND_LINKS=/root/wheels
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# run NAME: the commands of a block, each of which has to succeed. No systemd
# runs here that could be told to read its units again.
run() {
    # Beside the blocks: one of them has the name of this script.
    sed 's/^systemctl daemon-reload$//' "/root/blocks/$1" \
        >"/root/blocks/$1.sh"
    bash -e "/root/blocks/$1.sh" >"/root/$1.log" 2>&1 || {
        tail -n 20 "/root/$1.log" >&2
        return 1
    }
}

# The packages leave their users, if they were here.
for user in vsched vsched-agent; do
    ! getent passwd "$user" >/dev/null || userdel "$user"
done
[[ ! -e /opt/vsched && ! -e /etc/vsched ]]

for name in venv venv-controller venv-node venv-install-controller \
    venv-install-node venv-users; do
    run "$name"
done

version=
for command in agent collector manage status; do
    found=$("/opt/vsched/bin/vsched-$command" --version)
    [[ ${version:=$found} == "$found" ]]
done
for user in vsched vsched-agent; do
    getent passwd "$user" >/dev/null || {
        echo "there is no user $user" >&2
        exit 1
    }
done
verify_units /etc/systemd/system /opt/vsched/bin/
[[ $(stat -c '%a' /etc/vsched/vsched.conf) == 640 ]]
[[ $(stat -c '%a' /etc/vsched/vsched-agent.conf) == 640 ]]
[[ $(stat -c '%U:%G' /var/lib/vsched) == vsched-agent:vsched-agent ]]
[[ -s /opt/vsched/share/vsched/etc/prometheus/rules.yaml ]]
[[ -s /opt/vsched/share/vsched/etc/nginx-vsched.conf ]]
# A configuration that exists is kept.
echo '# mine' >/etc/vsched/vsched.conf
run venv-install-controller
grep -q '^/etc/vsched/vsched.conf: kept$' /root/venv-install-controller.log
[[ $(</etc/vsched/vsched.conf) == '# mine' ]]
echo "a virtual environment has version $version, its users and units"

# The environment of Nova.
python3 -m venv /opt/nova
/opt/nova/bin/pip install -q nova
PATH=/opt/nova/bin:$PATH run nova-packages
/opt/nova/bin/python -W ignore nova_scheduler.py /root/blocks/nova-conf
