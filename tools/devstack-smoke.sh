#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the phases of devstack's plugin on this machine, with the functions of
# a checkout of devstack, a real keystone, MariaDB and RabbitMQ, and without
# building a cloud: install is taken from .venv, services are processes of
# this script and not of systemd, and the REST service listens by itself and
# not behind Apache. Everything else is what stack.sh would do.

set -euo pipefail

usage() {
    cat <<USAGE
usage: tools/devstack-smoke.sh CHECKOUT

CHECKOUT is a copy of openstack/devstack. Needs root, what tools/test.sh has
set up (.venv with keystone and the command openstack: the extras test and
openstack), MariaDB and RabbitMQ on this machine. Leaves nothing behind.
USAGE
}

[[ $# == 1 && -e $1/functions ]] || {
    usage >&2
    exit 2
}

SMOKE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for command in keystone-manage openstack uwsgi; do
    [[ -x $SMOKE_ROOT/.venv/bin/$command ]] || {
        echo "$SMOKE_ROOT/.venv has no $command: install the extras" \
            'standalone,test,openstack there' >&2
        exit 2
    }
done
for command in mysql rabbitmqctl; do
    command -v "$command" >/dev/null || {
        echo "this machine has no $command" >&2
        exit 2
    }
done
# devstack writes where uWSGI's sockets go; not into this machine's folders.
if [[ ${VSCHED_SMOKE_INSIDE:-} != 1 ]]; then
    VSCHED_SMOKE_INSIDE=1 exec unshare --mount "$0" "$@"
fi
mount --make-rprivate /
mkdir -p /etc/tmpfiles.d /run/uwsgi
mount -t tmpfs none /etc/tmpfiles.d
mount -t tmpfs none /run/uwsgi

SMOKE_DIR=$(mktemp -d "${TMPDIR:-/tmp}/vsched-devstack.XXXXXX")
SMOKE_NAME=vsched_smoke_$$
SMOKE_PIDS=()
SMOKE_PASSWORD=$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')

leave() {
    local code=$? pid
    set +e
    trap - EXIT
    if [[ $code != 0 && -n ${VSCHED_API_LISTEN:-} ]]; then
        curl -s --noproxy '*' "$(vsched_url)/readiness"
    fi
    for pid in "${SMOKE_PIDS[@]}"; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    # Where the phases did not come so far.
    rabbitmqctl -q delete_vhost "$SMOKE_NAME" >/dev/null 2>&1
    mysql -e "DROP DATABASE IF EXISTS $SMOKE_NAME; DROP USER IF EXISTS $SMOKE_NAME@localhost, $SMOKE_NAME@'127.0.0.1'"
    [[ $code == 0 ]] || tail -n 20 "$SMOKE_DIR"/*.log
    rm -rf "$SMOKE_DIR"
    exit "$code"
}
trap leave EXIT

free_port() {
    "$SMOKE_ROOT/.venv/bin/python" -c '
import socket
with socket.socket() as one:
    one.bind(("127.0.0.1", 0))
    print(one.getsockname()[1])'
}

# What stack.sh has defined by the time it calls a plugin.
export TOP_DIR=$1 RC_DIR=$1 DEST=$SMOKE_DIR DATA_DIR=$SMOKE_DIR/data
export GLOBAL_VENV=True DEVSTACK_VENV=$SMOKE_ROOT/.venv USE_VENV=False
export PATH=$DEVSTACK_VENV/bin:$PATH
export STACK_USER=root REGION_NAME=RegionOne SERVICE_HOST=127.0.0.1
export SERVICE_PROTOCOL=http SERVICE_TIMEOUT=60 ENABLE_DEBUG_LOG_LEVEL=False
export SERVICE_PASSWORD=$SMOKE_PASSWORD SERVICE_PROJECT_NAME=service
export SERVICE_DOMAIN_NAME=Default API_WORKERS=1 WORKER_TIMEOUT=5
export SSL_BUNDLE_FILE='' MEMCACHE_SERVERS='' CURL_GET='curl -g'
export DATABASE_TYPE=mysql DATABASE_HOST=127.0.0.1 MYSQL_HOST=127.0.0.1
export DATABASE_USER=$SMOKE_NAME DATABASE_PASSWORD=$SMOKE_PASSWORD
export RABBIT_HOST=127.0.0.1 RABBIT_USERID=guest RABBIT_PASSWORD=guest
export ENABLED_SERVICES=key,mysql,rabbit,n-cpu,n-sch,placement-api
export NOVA_CONF=$SMOKE_DIR/nova.conf NOVA_CPU_CONF=$SMOKE_DIR/nova-cpu.conf
export PLACEMENT_CONF=$SMOKE_DIR/placement.conf NOVA_FILTERS=ComputeFilter
export LOGDIR=$SMOKE_DIR VERBOSE=True LOG_COLOR=False

# devstack's files expect neither unset variables nor failures to matter.
set +eu
# shellcheck disable=SC1091
source "$TOP_DIR/functions"
# shellcheck disable=SC1091
source "$TOP_DIR/lib/database"
# shellcheck disable=SC1091
source "$TOP_DIR/lib/rpc_backend"
# shellcheck disable=SC1091
source "$TOP_DIR/lib/apache"
# shellcheck disable=SC1091
source "$TOP_DIR/lib/keystone"
initialize_database_backends
define_database_baseurl
set -e
echo_summary() { echo "== $*"; }
sudo() { "$@"; }
time_start() { :; }
time_stop() { :; }
# The project is in .venv already, in just these versions.
setup_develop() { echo "pip install -e $1[$2]"; }

declare -A UNITS=()
run_process() {
    is_service_enabled "$1" || return 0
    local words
    read -ra words <<<"$2"
    env ${5:+"$5"} "${words[@]}" >"$SMOKE_DIR/$1.log" 2>&1 &
    UNITS[$1]=$!
    SMOKE_PIDS+=("$!")
}
stop_process() {
    [[ -n ${UNITS[$1]:-} ]] || return 0
    kill "${UNITS[$1]}"
    wait "${UNITS[$1]}" || true
    unset "UNITS[$1]"
}

echo_summary 'keystone'
mysql -e "CREATE USER $SMOKE_NAME@localhost IDENTIFIED BY '$SMOKE_PASSWORD', $SMOKE_NAME@'127.0.0.1' IDENTIFIED BY '$SMOKE_PASSWORD'; GRANT ALL ON $SMOKE_NAME.* TO $SMOKE_NAME@localhost, $SMOKE_NAME@'127.0.0.1'"
KEYSTONE_PORT=$(free_port)
export KEYSTONE_SERVICE_URI=http://127.0.0.1:$KEYSTONE_PORT
export OS_KEYSTONE_CONFIG_DIR=$SMOKE_DIR OS_KEYSTONE_CONFIG_FILES=keystone.conf
iniset "$SMOKE_DIR/keystone.conf" database connection "sqlite:///$SMOKE_DIR/keystone.db"
iniset "$SMOKE_DIR/keystone.conf" fernet_tokens key_repository "$SMOKE_DIR/fernet"
iniset "$SMOKE_DIR/keystone.conf" credential key_repository "$SMOKE_DIR/credential"
manage=(keystone-manage --config-file "$SMOKE_DIR/keystone.conf")
mkdir -m 700 "$SMOKE_DIR/fernet" "$SMOKE_DIR/credential"
"${manage[@]}" db_sync >"$SMOKE_DIR/keystone-manage.log" 2>&1
"${manage[@]}" fernet_setup --keystone-user root --keystone-group root
"${manage[@]}" bootstrap --bootstrap-password "$SMOKE_PASSWORD" \
    --bootstrap-region-id RegionOne \
    --bootstrap-public-url "$KEYSTONE_SERVICE_URI/v3" 2>>"$SMOKE_DIR/keystone-manage.log"
uwsgi --http-socket "127.0.0.1:$KEYSTONE_PORT" --master --die-on-term \
    --enable-threads --lazy-apps --buffer-size 65535 \
    --add-header 'Connection: close' \
    --module keystone.server.wsgi:initialize_public_application\(\) \
    >"$SMOKE_DIR/keystone.log" 2>&1 &
SMOKE_PIDS+=("$!")
cat >"$SMOKE_DIR/clouds.yaml" <<YAML
clouds:
  devstack-system-admin:
    auth_type: password
    region_name: RegionOne
    identity_api_version: '3'
    auth:
      auth_url: $KEYSTONE_SERVICE_URI/v3
      username: admin
      password: $SMOKE_PASSWORD
      user_domain_id: default
      system_scope: all
YAML
export OS_CLIENT_CONFIG_FILE=$SMOKE_DIR/clouds.yaml
wait_for_service 60 "$KEYSTONE_SERVICE_URI/v3"
get_or_create_role service >/dev/null
get_or_create_project service default >/dev/null

VSCHED_DIR=$SMOKE_ROOT
VSCHED_DATABASE=$SMOKE_NAME
VSCHED_VHOST=$SMOKE_NAME
VSCHED_CONF_DIR=$SMOKE_DIR/etc
VSCHED_API_LISTEN=127.0.0.1:$(free_port)
# shellcheck source=devstack/settings
source "$SMOKE_ROOT/devstack/settings"
# queues: of all virtual hosts, those of others may come and go.
queues() {
    local vhost
    rabbitmqctl -q list_vhosts --no-table-headers | sort |
        while read -r vhost; do
            rabbitmqctl -q list_queues -p "$vhost" --no-table-headers name |
                sed "s,^,$vhost ,"
        done | sort
}
QUEUES_BEFORE=$(queues)
host=compute-$$
for phase in pre-install install post-config extra; do
    if [[ $phase == extra ]]; then
        # As lib/nova does: this file is made between the two phases.
        iniset "$NOVA_CPU_CONF" DEFAULT host "$host"
        # A host of libvirt's test driver, without guests: those of this
        # machine may belong to others.
        echo '<node/>' >"$SMOKE_DIR/node.xml"
        iniset "$VSCHED_AGENT_CONF" hypervisor uri "test://$SMOKE_DIR/node.xml"
    fi
    # shellcheck source=devstack/plugin.sh
    source "$SMOKE_ROOT/devstack/plugin.sh" stack "$phase"
done

TOKEN=$(openstack --os-cloud devstack-system-admin token issue \
    -f value -c id)
ask() {
    curl -sS --fail-with-body --noproxy '*' -H "X-Auth-Token: $TOKEN" \
        "$(vsched_url)$1"
}

echo_summary 'checks'
# Nova's own scheduler has to find what nova.conf names.
"$DEVSTACK_VENV/bin/python" -W ignore \
    "$SMOKE_ROOT/tools/fresh_root/nova_scheduler.py" "$NOVA_CONF"
url=$(openstack --os-cloud devstack-system-admin catalog show vsched \
    -f json | grep -o "$(vsched_url)" | head -1)
[[ $url == "$(vsched_url)" ]] || {
    echo "the catalog has no service vsched at $(vsched_url)"
    exit 1
}
code=$(curl -s -o /dev/null -w '%{http_code}' --noproxy '*' "$url/v1/hosts")
[[ $code == 401 ]] || {
    echo "without a token: $code in place of 401"
    exit 1
}
for ((second = 0; second < 60; second++)); do
    ask /v1/hosts | grep -q "\"name\": *\"$host\"" && break
    sleep 1
done
ask "/v1/hosts/$host" | "$DEVSTACK_VENV/bin/python" -m json.tool
echo 'the agent of this machine reports; keystone lets only those in who may'

source "$SMOKE_ROOT/devstack/plugin.sh" unstack ''
source "$SMOKE_ROOT/devstack/plugin.sh" clean ''
[[ ! -e $VSCHED_CONF_DIR && ! -e $VSCHED_STATE_PATH ]]
rabbitmqctl -q list_vhosts --no-table-headers | grep -qx "$SMOKE_NAME" && {
    echo "the virtual host $SMOKE_NAME is left"
    exit 1
}
left=$(comm -13 <(echo "$QUEUES_BEFORE") <(queues) | grep -i vsched || true)
[[ -z $left ]] || {
    echo "queues are left: $left"
    exit 1
}
echo 'passed'
