#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The services that the quickstart and the tests stand on. A service that
# answers already is used as it is. One that doesn't is started here, by
# hand and not through systemd, with configuration and data of its own; the
# host's configuration is never written. The last run to leave a service
# that was started here stops it, so that two runs at the same time don't
# pull it from under each other.
#
# Sourced:   . tools/services.sh; ensure_libvirtd; ...; stop_started
# Run:       tools/services.sh --help

VSCHED_TOOLS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VSCHED_ROOT=$(dirname "$VSCHED_TOOLS")
VSCHED_RUN_DIR=${VSCHED_RUN_DIR:-/run/vsched}
VSCHED_DATA_DIR=${VSCHED_DATA_DIR:-/var/cache/vsched/services}
VSCHED_SERVICES=(libvirtd rabbitmq postgresql mariadb)

say() {
    echo "$*"
}

complain() {
    echo "$*" >&2
}

# shellcheck source=tools/services/packages.sh
. "$VSCHED_TOOLS/services/packages.sh"
# shellcheck source=tools/services/venv.sh
. "$VSCHED_TOOLS/services/venv.sh"
# shellcheck source=tools/services/processes.sh
. "$VSCHED_TOOLS/services/processes.sh"
# shellcheck source=tools/services/libvirtd.sh
. "$VSCHED_TOOLS/services/libvirtd.sh"
# shellcheck source=tools/services/rabbitmq.sh
. "$VSCHED_TOOLS/services/rabbitmq.sh"
# shellcheck source=tools/services/postgresql.sh
. "$VSCHED_TOOLS/services/postgresql.sh"
# shellcheck source=tools/services/mariadb.sh
. "$VSCHED_TOOLS/services/mariadb.sh"
# shellcheck source=tools/services/devstack.sh
. "$VSCHED_TOOLS/services/devstack.sh"

ensure_libvirtd() {
    ensure libvirtd
}

ensure_rabbitmq() {
    ensure rabbitmq
}

ensure_postgresql() {
    ensure postgresql
}

ensure_mariadb() {
    ensure mariadb
}

# stop_started: leaves all services that this run has used.
stop_started() {
    local index
    for ((index = ${#VSCHED_SERVICES[@]} - 1; index >= 0; index--)); do
        leave "${VSCHED_SERVICES[index]}"
    done
}

services_status() {
    local name pid
    for name in "${VSCHED_SERVICES[@]}"; do
        if pid=$(started_pid "$name"); then
            say "$name: started here, pid $pid"
        elif "answers_$name"; then
            say "$name: already running"
        else
            say "$name: not running"
        fi
    done
}

services_main() {
    local name command=${1:-}
    [[ $# == 0 ]] || shift
    # What is started by hand stays until it is stopped by hand.
    VSCHED_USER=kept
    case $command in
        start)
            [[ $# -gt 0 ]] || set -- "${VSCHED_SERVICES[@]}"
            for name in "$@"; do
                if [[ " ${VSCHED_SERVICES[*]} " != *" $name "* ]]; then
                    complain "no service $name: ${VSCHED_SERVICES[*]}"
                    return 2
                fi
                ensure "$name" || return 1
            done
            ;;
        stop) stop_started ;;
        status) services_status ;;
        -h | --help)
            cat <<USAGE
usage: tools/services.sh start [SERVICE...] | status | stop

SERVICE: ${VSCHED_SERVICES[*]}. What answers already is left alone; "stop"
stops what "start" started.

Environment: VSCHED_RUN_DIR ($VSCHED_RUN_DIR) and VSCHED_DATA_DIR
($VSCHED_DATA_DIR) hold state and data; VSCHED_RABBITMQ_PORT,
VSCHED_POSTGRESQL_PORT and VSCHED_MARIADB_PORT choose other ports. With
folders and ports of its own a test gets a broker or a database that it may
stop and kill.
USAGE
            ;;
        *)
            complain 'usage: tools/services.sh start [SERVICE...] |' \
                'status | stop'
            return 2
            ;;
    esac
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    services_main "$@"
fi
