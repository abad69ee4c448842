# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/services.sh: the message broker, for tests.

VSCHED_RABBITMQ_PORT=${VSCHED_RABBITMQ_PORT:-5672}

# Erlang's port mapper. The broker would start one and leave it behind.
answers_epmd() {
    port_answers 4369
}

start_epmd() {
    spawn epmd rabbitmq epmd -address 127.0.0.1
    await epmd "$SPAWNED" 20
}

answers_rabbitmq() {
    port_answers "$VSCHED_RABBITMQ_PORT"
}

start_rabbitmq() {
    ensure_packages rabbitmq-server || return 1
    ensure epmd || return 1
    local dir=$VSCHED_RUN_DIR/rabbitmq data=$VSCHED_DATA_DIR/rabbitmq node
    # The usual name, where it can be resolved, lets rabbitmqctl find it.
    node=rabbit@localhost
    if [[ $VSCHED_RABBITMQ_PORT != 5672 ]]; then
        node=vsched-$VSCHED_RABBITMQ_PORT@localhost
    elif getent hosts "$(uname -n)" >/dev/null; then
        node=rabbit@$(uname -n | cut -d . -f 1)
    fi
    rm -rf "$data"
    mkdir -p "$data"
    cat >"$dir/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$VSCHED_RABBITMQ_PORT
disk_free_limit.absolute = 50MB
CONF
    echo '[].' >"$dir/plugins"
    chown -R rabbitmq:rabbitmq "$data"
    # RUNNING_UNDER_SYSTEMD makes the script become the broker, instead of
    # waiting for it as a parent: one process, one pid.
    spawn rabbitmq rabbitmq env -C "$data" \
        HOME=/var/lib/rabbitmq \
        RUNNING_UNDER_SYSTEMD=1 \
        RABBITMQ_CONF_ENV_FILE=/dev/null \
        RABBITMQ_NODENAME="$node" \
        RABBITMQ_CONFIG_FILE="$dir/rabbitmq.conf" \
        RABBITMQ_ENABLED_PLUGINS_FILE="$dir/plugins" \
        RABBITMQ_DIST_PORT=$((VSCHED_RABBITMQ_PORT + 20000)) \
        RABBITMQ_MNESIA_BASE="$data/mnesia" \
        RABBITMQ_LOG_BASE="$data/log" \
        RABBITMQ_LOGS=- \
        /usr/lib/rabbitmq/bin/rabbitmq-server
    await rabbitmq "$SPAWNED" 90
}

clean_rabbitmq() {
    leave epmd
}
