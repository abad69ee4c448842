#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds what is installed without a clone: the wheel, and the Debian packages
# of packaging/debian.

set -euo pipefail

# shellcheck source=tools/services.sh
. "$(dirname "${BASH_SOURCE[0]}")/services.sh"

# What packaging/debian/control names in Build-Depends, and what builds it.
BUILD_PACKAGES=(
    "${PYTHON_PACKAGES[@]}" "${GUEST_PACKAGES[@]}" debhelper dpkg-dev
)

OUTPUT=$VSCHED_ROOT/dist
WHEEL_ONLY=0
WORK=

usage() {
    cat <<USAGE
usage: tools/packages.sh [--output DIR] [--wheel]

Builds into DIR (dist): the wheel, and on Debian 12 the packages vsched,
vsched-common, vsched-api, vsched-collector, vsched-agent, vsched-guest and
vsched-client with vsched_VERSION_ARCH.buildinfo and .changes. Python libraries
come from PyPI in the versions of upper-constraints.txt; those of vsched-client
are Debian's.

  --output DIR  takes the files
  --wheel       build the wheel only

Environment: PBR_VERSION is the version, by default git's; VSCHED_GUEST_DIR a
folder with the calibration guest, if it is not to be built. What is missing
of the build's packages is installed, which needs root.
USAGE
}

cleanup() {
    [[ -z $WORK ]] || rm -rf "$WORK"
}

# copy_tree DIR: the files that are tracked, and new ones that are not ignored.
copy_tree() {
    mkdir -p "$1"
    if git -C "$VSCHED_ROOT" rev-parse -q --verify HEAD >/dev/null 2>&1; then
        git -C "$VSCHED_ROOT" ls-files -z --cached --others \
            --exclude-standard |
            (cd "$VSCHED_ROOT" && while IFS= read -r -d '' name; do
                [[ ! -e $name && ! -L $name ]] || printf '%s\0' "$name"
            done | tar --null -T - -cf -) |
            tar -C "$1" -xf -
    else
        tar -C "$VSCHED_ROOT" --exclude .venv --exclude dist -cf - . |
            tar -C "$1" -xf -
    fi
}

# find_version PYTHON: the version of the tree, as pbr has it.
find_version() {
    if [[ -n ${PBR_VERSION:-} ]]; then
        echo "$PBR_VERSION"
    elif git -C "$VSCHED_ROOT" rev-parse -q --verify HEAD >/dev/null 2>&1; then
        (cd "$VSCHED_ROOT" && "$1" -W ignore -c '
from pbr import packaging
print(packaging.get_version("vsched"))')
    else
        echo 0.0.1
    fi
}

build_wheel() {
    say "packages: building the wheel of $PBR_VERSION"
    "$WORK/python/bin/pip" wheel -q --disable-pip-version-check --no-deps \
        --no-build-isolation --wheel-dir "$OUTPUT" "$WORK/wheel"
}

# debian_version VERSION: sorts releases behind their development versions.
debian_version() {
    sed -E 's/\.?(dev|a|b|rc)([0-9]+)/~\1\2/; s/\+/./g' <<<"$1"
}

build_debs() {
    local began=$SECONDS version log=$WORK/debs.log status=0
    version=$(debian_version "$PBR_VERSION")
    say "packages: building Debian packages of $version"
    mv "$WORK/tree/packaging/debian" "$WORK/tree/debian"
    cat >"$WORK/tree/debian/changelog" <<CHANGELOG
vsched ($version) unstable; urgency=medium

  * Built from the source tree; see the release notes.

 -- vsched developers <vsched@localhost>  $(date -R)
CHANGELOG
    (
        cd "$WORK/tree"
        [[ -z ${VSCHED_GUEST_DIR:-} ]] || export GUEST=$VSCHED_GUEST_DIR
        # debhelper gives the build a home of its own.
        export PIP_CACHE_DIR=${PIP_CACHE_DIR:-$HOME/.cache/pip}
        dpkg-buildpackage --build=binary --no-sign --root-command=
    ) >"$log" 2>&1 </dev/null || status=$?
    if [[ $status != 0 ]]; then
        tail -n 40 "$log" >&2
        complain 'packages: the build failed'
        return 1
    fi
    cp "$WORK"/*.deb "$WORK"/*.buildinfo "$WORK"/*.changes "$OUTPUT"
    say "packages: built in $((SECONDS - began)) s"
}

main() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --output)
                [[ $# -ge 2 ]] || {
                    complain 'packages: --output needs a folder'
                    exit 2
                }
                OUTPUT=$2
                shift 2
                ;;
            --output=*)
                OUTPUT=${1#--output=}
                shift
                ;;
            --wheel)
                WHEEL_ONLY=1
                shift
                ;;
            -h | --help)
                usage
                exit 0
                ;;
            *)
                complain "packages: no such option: $1"
                usage >&2
                exit 2
                ;;
        esac
    done
    mkdir -p "$OUTPUT"
    OUTPUT=$(cd "$OUTPUT" && pwd)
    trap cleanup EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    # Short: the paths of interpreters in scripts have a limit.
    WORK=$(mktemp -d "${TMPDIR:-/tmp}/vsched-build.XXXXXX")
    if [[ $WHEEL_ONLY == 1 ]]; then
        ensure_packages python3 python3-venv git
    else
        ensure_packages "${BUILD_PACKAGES[@]}"
    fi
    "$(find_python)" -m venv "$WORK/python"
    "$WORK/python/bin/pip" install -q --disable-pip-version-check \
        -c "$VSCHED_ROOT/upper-constraints.txt" pbr 'setuptools>=64' wheel
    PBR_VERSION=$(find_version "$WORK/python/bin/python")
    export PBR_VERSION SKIP_GENERATE_AUTHORS=1 SKIP_WRITE_GIT_CHANGELOG=1
    copy_tree "$WORK/wheel"
    cp -a "$WORK/wheel" "$WORK/tree"
    build_wheel
    [[ $WHEEL_ONLY == 1 ]] || build_debs
    ls -1 "$OUTPUT"
}

main "$@"
