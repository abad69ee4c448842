# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts of tools/fresh-root.sh that have installed units.

# verify_units FOLDER [PREFIX]: systemd accepts those of vsched there, and the
# programs that they start are there, with names that begin so.
verify_units() {
    local unit program
    SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no \
        "$1"/vsched-{agent,api,collector}.service \
        "$1"/vsched-helper-*.socket >/root/verify.log 2>&1 || {
        cat /root/verify.log >&2
        return 1
    }
    if grep -i vsched /root/verify.log; then
        echo 'the units have problems' >&2
        return 1
    fi
    for unit in agent api collector; do
        program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' \
            "$1/vsched-$unit.service")
        [[ $program == "${2:-}"* && -x $program ]] || {
            echo "vsched-$unit.service starts $program, which is not there" >&2
            return 1
        }
    done
}
