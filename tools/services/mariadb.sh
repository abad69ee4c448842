# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/services.sh: MariaDB, for tests. The user root needs no
# password on the loopback.

VSCHED_MARIADB_PORT=${VSCHED_MARIADB_PORT:-3306}

answers_mariadb() {
    port_answers "$VSCHED_MARIADB_PORT"
}

start_mariadb() {
    ensure_packages mariadb-server || return 1
    local data=$VSCHED_DATA_DIR/mariadb
    rm -rf "$data"
    install -d -m 0700 -o mysql -g mysql "$data"
    if ! mariadb-install-db --no-defaults --user=mysql --datadir="$data" \
        --auth-root-authentication-method=normal --skip-test-db \
        >"$VSCHED_RUN_DIR/mariadb/install" 2>&1; then
        cat "$VSCHED_RUN_DIR/mariadb/install" >&2
        complain 'mariadb: mariadb-install-db failed'
        return 1
    fi
    # Test data need not survive a power cut.
    spawn mariadb mysql mariadbd --no-defaults --datadir="$data" \
        --bind-address=127.0.0.1 --port="$VSCHED_MARIADB_PORT" \
        --socket="$data/socket" --pid-file="$data/pid" \
        --skip-name-resolve --innodb-flush-log-at-trx-commit=0 \
        --innodb-log-file-size=32M
    await mariadb "$SPAWNED" 60
}
