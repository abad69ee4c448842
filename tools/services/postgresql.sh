# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/services.sh: PostgreSQL, for tests. The roles root and
# postgres are superusers and need no password on the loopback.

VSCHED_POSTGRESQL_PORT=${VSCHED_POSTGRESQL_PORT:-5432}

answers_postgresql() {
    port_answers "$VSCHED_POSTGRESQL_PORT"
}

start_postgresql() {
    ensure_packages postgresql || return 1
    local data=$VSCHED_DATA_DIR/postgresql bin
    bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    rm -rf "$data"
    install -d -m 0700 -o postgres -g postgres "$data"
    if ! setpriv --reuid=postgres --regid=postgres --init-groups \
        "$bin/initdb" -D "$data" -U postgres -A trust -E UTF8 --no-sync \
        --locale=C.UTF-8 >"$VSCHED_RUN_DIR/postgresql/initdb" 2>&1; then
        cat "$VSCHED_RUN_DIR/postgresql/initdb" >&2
        complain 'postgresql: initdb failed'
        return 1
    fi
    # Test data need not survive a power cut.
    spawn postgresql postgres "$bin/postgres" -D "$data" \
        -c listen_addresses=127.0.0.1 -c "port=$VSCHED_POSTGRESQL_PORT" \
        -c "unix_socket_directories=$data" -c fsync=off \
        -c full_page_writes=off -c synchronous_commit=off
    await postgresql "$SPAWNED" 60 || return 1
    # Listening comes before serving: repeat until it does.
    if ! wait_for 30 "$bin/psql" -h 127.0.0.1 -p "$VSCHED_POSTGRESQL_PORT" \
        -U postgres -c 'CREATE ROLE root SUPERUSER LOGIN' postgres; then
        tail -n 20 "$VSCHED_RUN_DIR/postgresql/log" >&2
        complain 'postgresql: listens and does not serve'
        return 1
    fi
}
