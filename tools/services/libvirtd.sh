# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/services.sh: the hypervisor.

answers_libvirtd() {
    # A client would wait for ever on a daemon that hangs.
    command -v virsh >/dev/null &&
        timeout 20 virsh -q -c qemu:///system version >/dev/null 2>&1
}

# What belongs to the daemon where systemd runs it. The order matters: a
# socket that listens would start its service again.
LIBVIRT_UNITS=(
    libvirtd.socket libvirtd-ro.socket libvirtd-admin.socket
    libvirtd.service virtlogd.socket virtlogd-admin.socket virtlogd.service
    virtlockd.socket virtlockd-admin.socket virtlockd.service
)

start_libvirtd() {
    ensure_packages "${LIBVIRT_PACKAGES[@]}" || return 1
    rm -f "$VSCHED_RUN_DIR/libvirtd/units"
    if [[ -d /run/systemd/system ]]; then
        start_libvirtd_by_systemd
    else
        start_libvirtd_by_hand
    fi
}

# Guests belong in the slice that systemd has for them; a daemon started
# from a login session would put them into that session. This is needed
# only between the installation and the next boot.
start_libvirtd_by_systemd() {
    local dir=$VSCHED_RUN_DIR/libvirtd unit started
    : >"$dir/units"
    for unit in "${LIBVIRT_UNITS[@]}"; do
        systemctl -q is-active "$unit" || echo "$unit" >>"$dir/units"
    done
    if ! systemctl start libvirtd.service ||
        ! wait_for 60 answers_libvirtd; then
        systemctl --no-pager status libvirtd.service >&2 || true
        complain 'libvirtd: does not start'
        return 1
    fi
    # The daemon comes and goes on demand; systemd stays.
    started=$(start_time 1)
    echo "1 $started" >"$dir/started"
    say 'libvirtd: started by systemd'
}

stop_libvirtd() {
    local dir=$VSCHED_RUN_DIR/libvirtd unit pid
    if [[ -e $dir/units ]]; then
        while read -r unit; do
            systemctl -q stop "$unit"
        done <"$dir/units"
    else
        pid=$(started_pid libvirtd)
        stop_process "$pid"
    fi
}

# The daemon runs in a mount namespace where /etc/libvirt is a copy of the
# host's: its sockets are at the usual place for every client, its settings
# and the domains that are defined in it are not in the host's /etc.
start_libvirtd_by_hand() {
    local dir=$VSCHED_RUN_DIR/libvirtd
    rm -rf "${dir:?}/etc" "${dir:?}/pid"
    [[ -d /run/libvirt ]] || touch "$dir/made-run-libvirt"
    mkdir -p /run/libvirt
    cp -a /etc/libvirt "$dir/etc"
    # Networks are not needed, and one that starts by itself would put
    # bridges and firewall rules on the host.
    rm -f "$dir"/etc/qemu/networks/autostart/*
    cat >"$dir/etc/libvirtd.conf" <<'CONF'
auth_unix_ro = "none"
auth_unix_rw = "none"
CONF
    # Guests run as root, so that kernel and console may lie anywhere; no
    # virtlogd (stdio_handler), and no namespace or sandbox per guest: these
    # fail inside of containers.
    cat >>"$dir/etc/qemu.conf" <<'CONF'
user = "root"
group = "root"
security_driver = "none"
stdio_handler = "file"
namespaces = []
seccomp_sandbox = 0
CONF
    # Slave: what the host mounts later is seen inside, never the reverse.
    # shellcheck disable=SC2016  # expanded by the inner shell
    if ! unshare --mount --propagation slave sh -c '
        mount --bind "$1/etc" /etc/libvirt &&
            exec libvirtd -d -p "$1/pid"
    ' sh "$dir" >"$dir/log" 2>&1 </dev/null; then
        cat "$dir/log" >&2
        complain 'libvirtd: does not start'
        return 1
    fi
    await libvirtd "$(<"$dir/pid")" 60
}

# Guests outlive their daemon; whose they are is not known here.
busy_libvirtd() {
    local guests
    guests=$(timeout 20 virsh -q -c qemu:///system list --name |
        grep . | paste -sd ' ')
    [[ -z $guests ]] || echo "guests run in it: $guests"
}

clean_libvirtd() {
    [[ ! -e $VSCHED_RUN_DIR/libvirtd/made-run-libvirt ]] ||
        rm -rf /run/libvirt
    [[ ! -e $VSCHED_RUN_DIR/libvirtd/units ]] || return 0
    # With cgroup v1 and no systemd libvirt makes these and leaves them.
    find /sys/fs/cgroup -mindepth 2 -maxdepth 2 -type d -name machine \
        -exec rmdir {} + 2>/dev/null || true
}
