#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# From a fresh clone to a guaranteed VM: installs what is missing, then runs
# the demonstration (vsched_standalone.cmd.quickstart), then leaves the
# machine as it was, but for the packages and the caches.

set -euo pipefail

# shellcheck source=tools/services.sh
. "$(dirname "${BASH_SOURCE[0]}")/services.sh"

GUEST=${VSCHED_GUEST_DIR:-/var/cache/vsched/guest}
CHILD=

usage() {
    cat <<USAGE
usage: tools/quickstart.sh [--seconds N] [--json FILE] [--keep]

Boots a VM that is promised 60 % of a CPU beside neighbours that burn every
CPU, shows what it gets, and changes the promise over the REST API half way.

  --seconds N   how long to measure
  --json FILE   write the summary there, too
  --keep        leave everything running, to open the page that is named or
                to try the REST API; Ctrl-C or SIGTERM ends it

Run as root on Debian 12 or newer. What is missing is installed: Debian
packages, a virtual environment in .venv, a tiny guest in
$GUEST. KVM is used where a guest boots under it, else
QEMU emulates. Further options go to the demonstration as they are.
USAGE
}

# shellcheck disable=SC2329  # called by a trap
# The demonstration cleans up after itself; services come after it.
finish() {
    local status=$?
    trap '' INT TERM
    if [[ -n $CHILD ]] && kill -TERM "$CHILD" 2>/dev/null; then
        wait "$CHILD" || true
    fi
    stop_started || true
    exit "$status"
}

main() {
    local argument
    for argument in "$@"; do
        if [[ $argument == -h || $argument == --help ]]; then
            usage
            exit 0
        fi
    done
    if [[ $(id -u) != 0 ]]; then
        complain 'quickstart: run as root, to start VMs and schedule them'
        exit 1
    fi
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    local venv=$VSCHED_ROOT/.venv virt_type
    ensure_packages "${PYTHON_PACKAGES[@]}" "${GUEST_PACKAGES[@]}" \
        "${LIBVIRT_PACKAGES[@]}"
    ensure_venv "$venv" standalone
    "$VSCHED_TOOLS/guest/build.sh" --output "$GUEST"
    virt_type=$("$VSCHED_TOOLS/kvm-probe.sh" --guest-dir "$GUEST")
    say "guests: type $virt_type"
    ensure_libvirtd
    hold_host
    # In the background, because a signal interrupts "wait" but not a
    # command in the foreground. futurist imports eventlet where it finds
    # it, which warns at length; nothing here uses it.
    "$venv/bin/python" -W ignore:::futurist._utils \
        -m vsched_standalone.cmd.quickstart \
        --guest-dir "$GUEST" --virt-type "$virt_type" "$@" <&0 &
    CHILD=$!
    local status=0
    wait "$CHILD" || status=$?
    CHILD=
    exit "$status"
}

main "$@"
