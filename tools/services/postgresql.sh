# shellcheck shell=bash
# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
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
    wait_for 30 "$bin/psql" -h 127.0.0.1 -p "$VSCHED_POSTGRESQL_PORT" \
        -U postgres -c 'CREATE ROLE root SUPERUSER LOGIN' postgres
}
