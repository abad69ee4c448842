# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/services.sh: Debian packages.

# shellcheck disable=SC2034  # for those who source this
LIBVIRT_PACKAGES=(
    qemu-system-x86 qemu-utils libvirt-daemon-system libvirt-clients
    libvirt-daemon-driver-qemu
)
# libvirt-python is compiled when it is installed.
# shellcheck disable=SC2034
PYTHON_PACKAGES=(
    python3 python3-venv python3-dev libvirt-dev pkg-config gcc libc6-dev git
)
# What the functional tests call: how an agent without privileges is started,
# certificates, networks of their own, a proxy, Prometheus, a browser for the
# page.
# shellcheck disable=SC2034
TEST_PACKAGES=(
    sudo systemd passwd util-linux openssl iproute2 e2fsprogs procps
    nginx-light prometheus chromium
)
# What tools/guest/build.sh calls.
# shellcheck disable=SC2034
GUEST_PACKAGES=(cpio lz4 binutils gcc libc6-dev)

# installed PACKAGE: true when dpkg has it, configured.
installed() {
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == \
        installed ]]
}

# update_lists: reads the archive's lists of packages. apt waits for the lock of
# dpkg, but never for that of its lists, which another apt may hold.
update_lists() {
    local said tries=60
    while ! said=$(LC_ALL=C apt-get update -qq 2>&1); do
        tries=$((tries - 1))
        if [[ $said != *'Could not get lock'* || $tries == 0 ]]; then
            echo "$said" >&2
            return 1
        fi
        sleep 2
    done
}

# apt_install PACKAGE...: in a subshell, whose end takes the guard away. The
# guard is Debian's own way to keep an installation from starting daemons.
apt_install() {
    local guard=/usr/sbin/policy-rc.d
    if [[ ! -e $guard ]]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        trap 'exit 130' INT TERM
        printf '#!/bin/sh\nexit 101\n' >"$guard"
        chmod 0755 "$guard"
    fi
    # A fresh machine has no list of packages, or one that names files
    # which the archive has replaced since.
    update_lists &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q \
            -o DPkg::Lock::Timeout=300 --no-install-recommends "$@"
}

# ensure_packages PACKAGE...: installs those that are missing, and says
# which. Their services are not started by the installation: whoever needs
# one starts it, and stops it again.
ensure_packages() {
    local missing=() package
    for package in "$@"; do
        installed "$package" || missing+=("$package")
    done
    if [[ ${#missing[@]} == 0 ]]; then
        say "packages: all $# present"
        return 0
    fi
    if [[ $(id -u) != 0 ]]; then
        complain "packages: missing ${missing[*]}; run as root," \
            "or install them with apt-get"
        return 1
    fi
    say "packages: installing ${missing[*]}"
    local log status=0 began=$SECONDS
    log=$(mktemp)
    (apt_install "${missing[@]}") >"$log" 2>&1 </dev/null || status=$?
    if [[ $status != 0 ]]; then
        tail -n 20 "$log" >&2
        complain 'packages: installation failed'
    else
        say "packages: installed in $((SECONDS - began)) s"
    fi
    rm -f "$log"
    return "$status"
}
