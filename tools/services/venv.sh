# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/services.sh: the project's virtual environment.

# find_python: prints a Python that is new enough. Debian's own first: its
# headers, which libvirt-python is compiled against, are known to be there.
find_python() {
    local python
    for python in ${VSCHED_PYTHON:+"$VSCHED_PYTHON"} /usr/bin/python3 \
        python3; do
        if "$python" -c 'import sys, venv, ensurepip
sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$python"
            return 0
        fi
    done
    complain 'venv: no Python 3.11 or newer with venv and ensurepip'
    return 1
}

# ensure_venv DIR EXTRAS: a virtual environment in DIR with this project,
# editable, and its extras (a,b,c). Does nothing when all that decides its
# content is as it was when it was made.
ensure_venv() {
    local dir=$1 extras=$2 python print lock constraints=() file status=0
    local began=$SECONDS
    python=$(find_python) || return 1
    mkdir -p "$dir"
    exec {lock}>"$dir/.vsched-lock"
    flock "$lock"
    print=$({
        echo "$dir"
        "$python" -VV
        for file in setup.cfg setup.py pyproject.toml \
            upper-constraints.txt; do
            [[ ! -e $VSCHED_ROOT/$file ]] || cat "$VSCHED_ROOT/$file"
        done
    } | sha256sum | cut -d ' ' -f 1)
    # The stamp: the fingerprint, and the extras that are in already.
    local stamp=$dir/.vsched-stamp known='' present='' extra missing=0
    read -r known present 2>/dev/null <"$stamp" || true
    if [[ $known == "$print" ]]; then
        for extra in ${extras//,/ }; do
            [[ ,$present, == *,$extra,* ]] || missing=1
        done
        if [[ $missing == 0 ]]; then
            say "venv: up to date in $dir"
            exec {lock}>&-
            return 0
        fi
        extras=$present,$extras
    fi
    say "venv: installing vsched[$extras] in $dir"
    if [[ -e $VSCHED_ROOT/upper-constraints.txt ]]; then
        constraints=(-c "$VSCHED_ROOT/upper-constraints.txt")
    fi
    rm -f "$stamp"
    (
        # pbr asks git for the version. An archive has no git, and git is
        # silent about a clone that belongs to somebody else.
        if ! git -C "$VSCHED_ROOT" rev-parse -q --verify HEAD \
            >/dev/null 2>&1; then
            export PBR_VERSION=${PBR_VERSION:-0.0.1}
        fi
        export SKIP_GENERATE_AUTHORS=1 SKIP_WRITE_GIT_CHANGELOG=1
        "$python" -m venv "$dir" &&
            "$dir/bin/python" -m pip install -q \
                --disable-pip-version-check "${constraints[@]}" \
                -e "${VSCHED_ROOT}[$extras]"
    ) >"$dir/install.log" 2>&1 </dev/null || status=$?
    if [[ $status == 0 ]]; then
        echo "$print $extras" >"$stamp"
        say "venv: installed in $((SECONDS - began)) s"
    else
        tail -n 30 "$dir/install.log" >&2
        complain "venv: installation failed, see $dir/install.log"
    fi
    exec {lock}>&-
    return "$status"
}
