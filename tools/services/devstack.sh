# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/services.sh: a checkout of devstack, which no registry of
# packages has.

DEVSTACK_URL=${VSCHED_DEVSTACK_URL:-https://opendev.org/openstack/devstack}
# What the plugin is tested with.
DEVSTACK_COMMIT=${VSCHED_DEVSTACK_COMMIT:-493835a61a996731a7031861f80c7629acd5d6f2}
# A machine without a way to the server may wait for an answer for ever.
DEVSTACK_LIMIT_S=120

# ensure_devstack: sets VSCHED_DEVSTACK to a checkout: the one it names
# already, or one that is fetched. When none can be fetched it is empty, and
# that is no failure: the caller says what it leaves out.
ensure_devstack() {
    [[ -z ${VSCHED_DEVSTACK:-} ]] || return 0
    local dir=$VSCHED_DATA_DIR/devstack/$DEVSTACK_COMMIT new why
    if [[ ! -e $dir/functions ]]; then
        new=$dir.$BASHPID
        rm -rf "$new"
        say "devstack: fetching $DEVSTACK_URL"
        if ! why=$(fetch_devstack "$new" 2>&1); then
            rm -rf "$new"
            say "devstack: not fetched: $(tail -n 1 <<<"$why")"
            VSCHED_DEVSTACK=''
            return 0
        fi
        # Another run may have been faster.
        mv -T "$new" "$dir" 2>/dev/null || rm -rf "$new"
    fi
    say "devstack: $dir"
    VSCHED_DEVSTACK=$dir
}

# fetch_devstack DIR: the one commit, and nothing asks for a password.
fetch_devstack() {
    mkdir -p "$1" && git -C "$1" init -q &&
        GIT_TERMINAL_PROMPT=0 timeout "$DEVSTACK_LIMIT_S" \
            git -C "$1" fetch -q --depth 1 "$DEVSTACK_URL" "$DEVSTACK_COMMIT" ||
        return 1
    git -C "$1" checkout -q FETCH_HEAD
}
