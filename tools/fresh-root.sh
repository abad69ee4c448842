#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian packages into a new Debian 12 root, in namespaces of its
# own, and purges them; runs the commands of the installation guide there, with
# a broker, databases and keystone, and those for a virtual environment.

set -euo pipefail

# shellcheck source=tools/services.sh
. "$(dirname "${BASH_SOURCE[0]}")/services.sh"

SUITE=bookworm
PACKAGES=
ALL_PARTS=(packages guide venv)
PARTS=()
PYTHON=${PYTHON:-}
ROOT=${ROOT:-}
WORK=

#: What the guide expects to be there.
GUIDE_PACKAGES=(
    mariadb-server postgresql rabbitmq-server keystone
    python3-openstackclient curl openssl iproute2 procps
)

usage() {
    cat <<USAGE
usage: tools/fresh-root.sh [--part PART]... [--packages DIR]

Makes a Debian 12 root in a temporary folder, and there, by PART:

  packages  installs the packages of tools/packages.sh, calls each command,
            verifies the units, purges the packages and checks that nothing is
            left;
  guide     does that, runs the commands of
            doc/source/install/controllers.rst, compute-nodes.rst and tls.rst
            against a real broker, MariaDB, PostgreSQL and keystone, makes a
            reservation on a simulated host by Debian's "openstack", finds it
            on the page in this machine's Chromium, and purges again;
  venv      runs the commands of packages.rst for a virtual environment, and
            has Nova load the filters in one.

All of them without --part. Takes some minutes, needs root, and Debian's
archive and PyPI. The last line is "passed".

  --packages DIR  with the wheel and the packages; by default they are built
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

# report STAGE: what begins, and when.
report() {
    say "fresh-root: $* (at $SECONDS s)"
}

# make_root: a root without services, with apt's sources of this machine.
make_root() {
    local sources=http://deb.debian.org/debian include=systemd
    [[ ! -e /etc/apt/sources.list.d/debian.sources ]] ||
        sources=/etc/apt/sources.list.d/debian.sources
    mkdir "$ROOT"
    # A root that is thrown away need not be on the disk: each fsync of dpkg
    # holds up the databases of the tests beside it.
    mmdebstrap --quiet --variant=minbase --include="$include" \
        --dpkgopt=force-unsafe-io --skip=output/dev "$SUITE" "$ROOT" "$sources"
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
    cp "$VSCHED_TOOLS"/fresh_root/*.{py,sh} "$ROOT/root"
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

# install_inside PACKAGE...
install_inside() {
    inside apt-get -qq install "$@" >"$WORK/apt.log" 2>&1 || {
        tail -n 20 "$WORK/apt.log" >&2
        exit 1
    }
}

# find_browser_python: prints a Python that drives Chromium. That of tox and of
# tools/test.sh does.
find_browser_python() {
    local python
    for python in python3 "$VSCHED_ROOT/.venv/bin/python"; do
        if "$python" -c 'import playwright' 2>/dev/null; then
            echo "$python"
            return 0
        fi
    done
    ensure_venv "$VSCHED_ROOT/.venv" standalone,test >&2
    echo "$VSCHED_ROOT/.venv/bin/python"
}

# run_guide: in namespaces of its own, all of whose processes end with it.
run_guide() {
    inside /root/guide.sh
    PYTHONPATH=$VSCHED_ROOT "$PYTHON" -W ignore \
        "$VSCHED_TOOLS/fresh_root/page.py" http://127.0.0.1:8790 \
        "$ROOT/root/page-token.log" "$(<"$ROOT/root/instance")" '30.0 %'
    inside /root/leave.sh
}

# make_wheels: what pip installs in the root, which knows neither this
# machine's cache nor its certificates.
make_wheels() {
    local wheels=("$PACKAGES"/vsched-*.whl)
    "$(find_python)" -m venv "$WORK/python"
    "$WORK/python/bin/pip" wheel -q --disable-pip-version-check \
        -c "$VSCHED_ROOT/upper-constraints.txt" \
        --wheel-dir "$ROOT/root/wheels" \
        "${wheels[0]}[agent,api,mysql,nova,uwsgi]"
}

# has PART: whether it is to be run.
has() {
    [[ " ${PARTS[*]} " == *" $1 "* ]]
}

main() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --part)
                [[ $# -ge 2 && " ${ALL_PARTS[*]} " == *" $2 "* ]] || {
                    complain "fresh-root: --part needs one of ${ALL_PARTS[*]}"
                    exit 2
                }
                PARTS+=("$2")
                shift
                ;;
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
    [[ ${#PARTS[@]} -gt 0 ]] || PARTS=("${ALL_PARTS[@]}")
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
    ensure_packages mmdebstrap "${PYTHON_PACKAGES[@]}"
    if has guide; then
        ensure_packages chromium
        PYTHON=$(find_browser_python)
    fi
    if [[ -z $PACKAGES ]]; then
        PACKAGES=$WORK/packages
        "$VSCHED_TOOLS/packages.sh" --output "$PACKAGES"
    fi
    report 'making a root'
    make_root
    inside apt-get -qq update
    local page
    for page in controllers compute-nodes tls packages; do
        copy_blocks "install/$page.rst"
    done
    if has packages || has guide; then
        report 'installing'
        # What ours depend on stays there for the guide, which has no network.
        inside /root/packages.sh
    fi
    if has guide; then
        install_inside "${GUIDE_PACKAGES[@]}"
        report 'running the guide'
        VSCHED_FRESH_ROOT=guide ROOT=$ROOT PYTHON=$PYTHON \
            unshare --net --uts --ipc --pid --fork --kill-child --mount-proc \
            "$0"
    fi
    if has venv; then
        report 'making a virtual environment'
        # A host has it; units name /bin/kill.
        install_inside procps
        make_wheels
        inside /root/venv.sh | tee "$WORK/venv.log"
        # It has come to its end.
        grep -q '^nova finds ' "$WORK/venv.log"
    fi
    say 'passed'
}

case ${VSCHED_FRESH_ROOT:-} in
    guide) run_guide ;;
    inside) main "$@" ;;
    *) VSCHED_FRESH_ROOT=inside exec unshare --mount "$0" "$@" ;;
esac
