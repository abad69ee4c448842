#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The REST API over simulated hosts, from a clone: installs what is missing
# into .venv, then runs vsched-demo.

set -euo pipefail

# shellcheck source=tools/services.sh
. "$(dirname "${BASH_SOURCE[0]}")/services.sh"

usage() {
    cat <<USAGE
usage: tools/demo.sh [OPTION...]

Serves vsched's REST API on 127.0.0.1 over simulated hosts and instances that
report changing figures. Needs no virtual machine, no broker and no privilege,
but Python 3.11 or newer with venv. Ctrl-C ends it, and its database.

  --hosts N       number of hosts
  --instances N   number of instances of each host
  --seed N        equal seeds have equal hosts and instances
  --port N        port of the REST API, 0 for any free one
  --help          all options
USAGE
}

main() {
    if [[ ${1:-} == -h ]]; then
        usage
        exit 0
    fi
    local venv=$VSCHED_ROOT/.venv
    ensure_venv "$venv" demo
    # futurist imports eventlet where it finds it, which warns at length.
    exec "$venv/bin/python" -W ignore:::futurist._utils \
        -m vsched_standalone.cmd.demo "$@"
}

main "$@"
