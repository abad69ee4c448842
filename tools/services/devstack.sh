# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/services.sh: a checkout of devstack, which no registry of
# packages has.

# In this order, separated by blanks. A commit is the same wherever it comes from.
DEVSTACK_URLS=${VSCHED_DEVSTACK_URL:-https://opendev.org/openstack/devstack
https://github.com/openstack/devstack}
# What the plugin is tested with.
DEVSTACK_COMMIT=${VSCHED_DEVSTACK_COMMIT:-493835a61a996731a7031861f80c7629acd5d6f2}
# A machine without a way to a server may wait for an answer for ever.
DEVSTACK_LIMIT_S=60

# ensure_devstack: sets VSCHED_DEVSTACK to a checkout: the one it names
# already, or one that is fetched. When none can be fetched it is empty, and
# that is no failure: the caller says what it leaves out.
ensure_devstack() {
    [[ -z ${VSCHED_DEVSTACK:-} ]] || return 0
    local dir=$VSCHED_DATA_DIR/devstack/$DEVSTACK_COMMIT new url urls why
    if [[ ! -e $dir/functions ]]; then
        new=$dir.$BASHPID
        read -r -d '' -a urls <<<"$DEVSTACK_URLS" || true
        for url in "${urls[@]}"; do
            rm -rf "$new"
            say "devstack: fetching $url"
            if why=$(fetch_devstack "$new" "$url" 2>&1); then
                break
            fi
            say "devstack: not fetched: $(tail -n 1 <<<"$why")"
            rm -rf "$new"
        done
        if [[ ! -e $new ]]; then
            VSCHED_DEVSTACK=''
            return 0
        fi
        # Another run may have been faster.
        mv -T "$new" "$dir" 2>/dev/null || rm -rf "$new"
    fi
    say "devstack: $dir"
    VSCHED_DEVSTACK=$dir
}

# fetch_devstack DIR URL: the one commit, and nothing asks for a password.
fetch_devstack() {
    mkdir -p "$1" && git -C "$1" init -q &&
        GIT_TERMINAL_PROMPT=0 timeout "$DEVSTACK_LIMIT_S" \
            git -C "$1" fetch -q --depth 1 "$2" "$DEVSTACK_COMMIT" ||
        return 1
    git -C "$1" checkout -q FETCH_HEAD
}
