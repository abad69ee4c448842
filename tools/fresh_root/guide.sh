#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What tools/fresh-root.sh does in its root: the commands of the installation
# guide, from the files in /root/blocks, with services of this script and not
# of systemd, which does not run here. They run on after it, for the page, until
# leave.sh ends them.

set -euo pipefail

umount /proc
mount -t proc proc /proc
hostname controller
ip link set lo up
cd /root

say() {
    echo "guide: $* (at $SECONDS s)"
}

on_exit() {
    local code=$? log
    if [[ $code != 0 ]]; then
        echo "guide: failed in line $FAILED_LINE" >&2
        for log in /root/*.log; do
            printf '== %s\n' "$log"
            tail -n 15 "$log"
        done >&2
    fi
    exit "$code"
}
trap on_exit EXIT
FAILED_LINE=0
set -E
trap 'FAILED_LINE=$LINENO' ERR

# block NAME: a block of the guide with passwords in place. Units are enabled
# and not started: no systemd runs here.
block() {
    sed -e 's/DB_SECRET/db-secret/g; s/BROKER_SECRET/broker-secret/g' \
        -e 's/KEYSTONE_SECRET/keystone-secret/g; s/NODE_SECRET/node-secret/g' \
        -e 's/^systemctl enable --now /systemctl enable /' \
        "/root/blocks/$1"
}

# run NAME: the commands of a block, each of which has to succeed.
run() {
    say "$1"
    block "$1" >"/root/$1.sh"
    bash -e "/root/$1.sh" >"/root/$1.log" 2>&1
}

# await WHAT COMMAND...: until a command succeeds.
await() {
    local what=$1 second
    shift
    for ((second = 0; second < 90; second++)); do
        if "$@" >/root/await.log 2>&1; then
            return 0
        fi
        sleep 1
    done
    echo "$what does not answer" >&2
    return 1
}

# start_unit NAME: what systemd would start, as the user of the unit.
start_unit() {
    local files user program folder variables=()
    files=(/usr/lib/systemd/system/"$1".service)
    [[ ! -d /etc/systemd/system/$1.service.d ]] ||
        files+=(/etc/systemd/system/"$1".service.d/*.conf)
    user=$(sed -n 's/^User=//p' "${files[@]}")
    program=$(sed -n 's/^ExecStart=//p' "${files[@]}")
    folder=$(sed -n 's/^RuntimeDirectory=//p' "${files[@]}")
    mapfile -t variables < <(sed -n 's/^Environment=//p' "${files[@]}")
    [[ -z $folder ]] || install -d -m 0700 -o "$user" "/run/$folder"
    # shellcheck disable=SC2086  # words of a command line
    setpriv --reuid "$user" --regid "$user" --init-groups --no-new-privs \
        env -C / "${variables[@]}" $program >"/root/$1.log" 2>&1 &
}

say 'services that the guide expects'
install -d -o mysql -g mysql /run/mysqld
mariadbd --user=mysql >/root/mariadb.log 2>&1 &
install -d -o postgres -g postgres /run/postgresql
# Its package chose a port that was free outside of this namespace.
sed -i 's/^port = .*/port = 5432/' /etc/postgresql/15/main/postgresql.conf
pg_ctlcluster 15 main start
run tls-authority
run tls-certificate
install -m 0644 ca.crt server.crt /etc/rabbitmq
install -m 0600 -o rabbitmq server.key /etc/rabbitmq
block tls-rabbitmq >/etc/rabbitmq/rabbitmq.conf
# A broker refuses to work when less than this is free.
echo 'disk_free_limit.absolute = 50MB' >>/etc/rabbitmq/rabbitmq.conf
rabbitmq-server >/root/rabbitmq.log 2>&1 &
await MariaDB mysql -e 'SELECT 1'
mysql <<'SQL'
CREATE DATABASE keystone;
CREATE USER keystone IDENTIFIED BY 'secret';
GRANT ALL PRIVILEGES ON keystone.* TO keystone;
SQL
cat >/etc/keystone/keystone.conf <<'CONF'
[database]
connection = mysql+pymysql://keystone:secret@127.0.0.1/keystone
[token]
provider = fernet
CONF
{
    keystone-manage db_sync
    keystone-manage fernet_setup --keystone-user keystone \
        --keystone-group keystone
    keystone-manage credential_setup --keystone-user keystone \
        --keystone-group keystone
    keystone-manage bootstrap --bootstrap-password secret \
        --bootstrap-region-id RegionOne \
        --bootstrap-internal-url http://controller:5000/v3 \
        --bootstrap-public-url http://controller:5000/v3
} >/root/keystone-manage.log 2>&1
runuser -u keystone -- keystone-wsgi-public --port 5000 \
    >/root/keystone.log 2>&1 &
export OS_AUTH_URL=http://controller:5000/v3 OS_USERNAME=admin
export OS_PASSWORD=secret OS_PROJECT_NAME=admin OS_IDENTITY_API_VERSION=3
export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default
await keystone curl -sf http://controller:5000/v3
# Other services of OpenStack need these as well.
openstack project create service >/root/project.log
openstack role create service >/root/role.log
await RabbitMQ rabbitmqctl await_startup

# Controllers
cd /root/packages
run controller-packages
cd /root
run controller-mariadb
run controller-postgresql
run controller-broker
run controller-keystone
install -m 0644 ca.crt /etc/vsched/ca.crt
# Nova and placement are not here.
block controller-conf | sed '/^\[nova\]/,$d' >/etc/vsched/vsched.conf
run controller-conf-mode
run controller-master-key
sed 's,mysql+pymysql,postgresql+psycopg2,' /etc/vsched/vsched.conf \
    >/root/postgresql.conf
vsched-manage --config-file /root/postgresql.conf db sync \
    >/root/postgresql-sync.log 2>&1
run controller-tables
[[ $(vsched-manage db version) == \
    "$(vsched-manage --config-file /root/postgresql.conf db version)" ]]
install -d /etc/systemd/system/vsched-api.service.d
block controller-address \
    >/etc/systemd/system/vsched-api.service.d/override.conf
run controller-start
start_unit vsched-collector
start_unit vsched-api
await vsched-api curl -sf http://controller:8790/readiness
run controller-check
run controller-token
code=$(curl -s -o /dev/null -w '%{http_code}' http://controller:8790/v1/hosts)
[[ $code == 401 ]]

# Compute nodes
run broker-agent
run host-key
cd /root/packages
run node-packages
cd /root
block node-conf >/etc/vsched/vsched-agent.conf
run node-files
# libvirt is not here: the doctor has findings, and reports them.
run node-doctor || grep -q libvirt /root/node-doctor.log
run node-start
systemctl is-enabled --quiet vsched-agent vsched-api vsched-collector
install -m 0644 /root/agent.py /run/agent.py
setpriv --reuid vsched-agent --regid vsched-agent --clear-groups env -C / \
    /opt/vsched/bin/python -W ignore /run/agent.py \
    /etc/vsched/vsched-agent.conf >/root/agent.log 2>&1 &
block node-check >/root/await-node.sh
await node-1 bash -e /root/await-node.sh
run node-check
grep -q '"state": *"up"' /root/node-check.log

# get PATH: with a token.
get() {
    curl -sf -H "X-Auth-Token: $(openstack token issue -f value -c id)" \
        "http://controller:8790$1"
}

# field NAME: of a reservation that "openstack cpu" has shown as JSON.
field() {
    python3 -c '
import json, sys
print(json.load(sys.stdin)["enforced"][sys.argv[1]])' "$1"
}

cd /root/packages
run client-packages
cd /root
run client-hosts
grep -q node-1 /root/client-hosts.log
await 'a reservation' bash -c "$(declare -f get)
    get /v1/reservations | grep -q '\"state\": *\"applied\"'"
# One that its flavor has not given a reservation.
{
    get /v1/instances
    get /v1/reservations
} | python3 -c '
import json, sys
text = sys.stdin.read()
found, end = json.JSONDecoder().raw_decode(text)
every = [one["instance_uuid"] for one in found["instances"]]
found = json.loads(text[end:])["reservations"]
reserved = {one["instance_uuid"] for one in found}
print(next(one for one in every if one not in reserved))' >/root/instance
INSTANCE=$(</root/instance)
export INSTANCE
run reservation-create
[[ $(openstack cpu reservation show "$INSTANCE" -f json |
    field runtime_us) == 5000 ]]
say '"openstack cpu reservation create" has made a reservation on the host'
run reservation-set
[[ $(openstack cpu reservation show "$INSTANCE" -f json |
    field runtime_us) == 6000 ]]

# What filters ask as nova.conf has it: with their user, by keystone's
# catalogue. Nova itself is not here; venv.sh installs it.
install -d /etc/nova /etc/placement
block nova-conf >/etc/nova/nova.conf
block placement-conf >/etc/placement/placement.conf
run controller-status
grep -q 'Check: What filters ask' /root/controller-status.log
[[ $(grep -c 'not checked: /etc' /root/controller-status.log) == 0 ]]
run page-token
