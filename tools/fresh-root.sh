#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages into a new Debian 12 root, in namespaces of its
# own, and purges them. Without --quick the commands of the installation guide
# are run there in between, with a broker, databases and keystone.

set -euo pipefail

# shellcheck source=tools/services.sh
. "$(dirname "${BASH_SOURCE[0]}")/services.sh"

SUITE=bookworm
PACKAGES=
QUICK=0
WORK=

#: What the guide expects to be there.
GUIDE_PACKAGES=(
    mariadb-server postgresql rabbitmq-server keystone
    python3-openstackclient curl openssl iproute2 procps
)

usage() {
    cat <<USAGE
usage: tools/fresh-root.sh [--quick] [--packages DIR]

Makes a Debian 12 root in a temporary folder, installs the packages of
tools/packages.sh, runs the commands of doc/source/install/controllers.rst,
compute-nodes.rst and tls.rst against a real broker, MariaDB, PostgreSQL and
keystone, changes a reservation of a simulated host over REST, purges the
packages and checks that nothing is left. Takes some minutes, needs root, and
Debian's archive and PyPI. The last line is "passed".

  --quick         no services: install, call each command, verify the units,
                  purge
  --packages DIR  with the packages; by default they are built
USAGE
}

cleanup() {
    local code=$?
    trap - EXIT
    if [[ -n $WORK ]]; then
        # They are in the namespace of this process only.
        ! mountpoint -q "$WORK/root" || umount --recursive --lazy "$WORK/root"
        rm -rf --one-file-system "$WORK"
    fi
    exit "$code"
}

# make_root: a root without services, with apt's sources of this machine.
make_root() {
    local sources=http://deb.debian.org/debian include=systemd
    [[ ! -e /etc/apt/sources.list.d/debian.sources ]] ||
        sources=/etc/apt/sources.list.d/debian.sources
    mkdir "$ROOT"
    mmdebstrap --quiet --variant=minbase --include="$include" \
        --skip=output/dev "$SUITE" "$ROOT" "$sources"
    printf '#!/bin/sh\nexit 101\n' >"$ROOT/usr/sbin/policy-rc.d"
    chmod 0755 "$ROOT/usr/sbin/policy-rc.d"
    cat >"$ROOT/etc/apt/apt.conf.d/90fresh" <<'CONF'
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
CONF
    cp /etc/resolv.conf "$ROOT/etc/resolv.conf"
    echo controller >"$ROOT/etc/hostname"
    echo '127.0.0.1 localhost controller' >"$ROOT/etc/hosts"
    mount --bind "$ROOT" "$ROOT"
    mount -t proc proc "$ROOT/proc"
    mount -t sysfs -o ro sysfs "$ROOT/sys"
    mount --rbind /dev "$ROOT/dev"
    mount -t tmpfs tmpfs "$ROOT/run"
    mount -t tmpfs tmpfs "$ROOT/tmp"
    install -d "$ROOT/root/packages" "$ROOT/root/blocks"
    cp "$PACKAGES"/*.deb "$ROOT/root/packages"
    cp "$VSCHED_TOOLS"/fresh_root/* "$ROOT/root"
}

# copy_blocks PAGE: the named code blocks of a page, one file each.
copy_blocks() {
    local name
    sed -n 's/^   :name: //p' "$VSCHED_ROOT/doc/source/$1" |
        while read -r name; do
            (cd "$VSCHED_ROOT" && python3 -c '
import sys
from vsched_standalone.tests import documentation
print(documentation.block(*sys.argv[1:]), end="")' "$1" "$name") \
                >"$ROOT/root/blocks/$name"
        done
}

inside() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive chroot "$ROOT" "$@"
}

main() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --quick) QUICK=1 ;;
            --packages)
                [[ $# -ge 2 ]] || {
                    complain 'fresh-root: --packages needs a folder'
                    exit 2
                }
                PACKAGES=$(cd "$2" && pwd)
                shift
                ;;
            -h | --help)
                usage
                exit 0
                ;;
            *)
                complain "fresh-root: no such option: $1"
                usage >&2
                exit 2
                ;;
        esac
        shift
    done
    if [[ $(id -u) != 0 ]]; then
        complain 'fresh-root: run as root, to make a root and mount in it'
        exit 1
    fi
    mount --make-rprivate /
    trap cleanup EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    WORK=$(mktemp -d "${TMPDIR:-/var/tmp}/vsched-root.XXXXXX")
    ROOT=$WORK/root
    ensure_packages mmdebstrap python3
    if [[ -z $PACKAGES ]]; then
        PACKAGES=$WORK/packages
        "$VSCHED_TOOLS/packages.sh" --output "$PACKAGES"
    fi
    say 'fresh-root: making a root'
    make_root
    say 'fresh-root: installing'
    inside apt-get -qq update
    if [[ $QUICK == 1 ]]; then
        inside /root/quick.sh
    else
        copy_blocks install/controllers.rst
        copy_blocks install/compute-nodes.rst
        copy_blocks install/tls.rst
        inside apt-get -qq install "${GUIDE_PACKAGES[@]}" \
            >"$WORK/apt.log" 2>&1 || {
            tail -n 20 "$WORK/apt.log" >&2
            exit 1
        }
        # The packages that ours depend on, while there is a network.
        inside sh -c 'cd /root/packages && apt-get -qq install \
            ./vsched_*.deb ./vsched-common_*.deb ./vsched-agent_*.deb &&
            apt-get -qq purge "vsched*"' >"$WORK/apt.log" 2>&1 || {
            tail -n 20 "$WORK/apt.log" >&2
            exit 1
        }
        say 'fresh-root: running the guide'
        unshare --net --uts --ipc --pid --fork --kill-child \
            env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
            LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            chroot "$ROOT" /root/guide.sh
    fi
    say 'passed'
}

if [[ ${VSCHED_FRESH_ROOT:-} != inside ]]; then
    VSCHED_FRESH_ROOT=inside exec unshare --mount "$0" "$@"
fi
main "$@"
