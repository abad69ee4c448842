#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Prints the libvirt domain type that guests can have here: "kvm" where a
# guest really boots under it, else "qemu". That /dev/kvm exists proves
# nothing: where the machine is a guest itself, KVM may start a guest that
# never executes its kernel. So one is booted, and given some seconds.

set -euo pipefail

GUEST=${VSCHED_GUEST_DIR:-/var/cache/vsched/guest}
CACHE=${VSCHED_RUN_DIR:-/run/vsched}/kvm-probe
BOUND_S=15
FORCE=0

usage() {
    cat <<USAGE
usage: tools/kvm-probe.sh [--guest-dir DIR] [--force]

Prints kvm or qemu; why, to standard error. The verdict is remembered until
the next boot; --force asks again.
USAGE
}

# boots_under_kvm: true when the guest reports that it is ready in time.
boots_under_kvm() {
    local console status=1 pid deadline
    console=$(mktemp)
    qemu-system-x86_64 -machine q35,accel=kvm -cpu qemu64 -m 96 -smp 1 \
        -display none -nodefaults -no-reboot -serial "file:$console" \
        -kernel "$GUEST/vmlinux" -initrd "$GUEST/initramfs.cpio" \
        -append 'console=ttyS0 quiet vsched.load=idle' \
        </dev/null >/dev/null 2>&1 &
    pid=$!
    deadline=$((SECONDS + BOUND_S))
    while [[ $SECONDS -lt $deadline ]]; do
        if grep -q 'vsched-guest ready' "$console"; then
            status=0
            break
        fi
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.2
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    rm -f "$console"
    return "$status"
}

main() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --guest-dir)
                [[ $# -ge 2 ]] || { usage >&2 && exit 2; }
                GUEST=$2
                shift 2
                ;;
            --force)
                FORCE=1
                shift
                ;;
            -h | --help)
                usage
                exit 0
                ;;
            *)
                usage >&2
                exit 2
                ;;
        esac
    done
    local boot verdict=qemu
    read -r boot </proc/sys/kernel/random/boot_id
    if [[ $FORCE == 0 ]] && grep -q "^$boot " "$CACHE" 2>/dev/null; then
        cut -d ' ' -f 2 "$CACHE"
        return
    fi
    if [[ ! -r /dev/kvm || ! -w /dev/kvm ]]; then
        # Not remembered: the module may be loaded later, and this is quick.
        echo 'kvm: no usable /dev/kvm' >&2
        echo "$verdict"
        return
    elif [[ ! -s $GUEST/vmlinux ]]; then
        echo "kvm: no guest in $GUEST; run tools/guest/build.sh" >&2
        exit 1
    elif boots_under_kvm; then
        verdict=kvm
    else
        echo "kvm: /dev/kvm exists, but no guest boots within" \
            "$BOUND_S s: emulating" >&2
    fi
    mkdir -p "$(dirname "$CACHE")"
    echo "$boot $verdict" >"$CACHE"
    echo "$verdict"
}

main "$@"
