#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# What stack.sh, unstack.sh and clean.sh call at their phases.

# shellcheck source=devstack/lib/vsched
source "$VSCHED_DIR/devstack/lib/vsched"

if is_vsched_enabled; then
    case "$1-$2" in
        stack-install)
            echo_summary 'Installing vsched'
            install_vsched
            ;;
        stack-post-config)
            echo_summary 'Configuring vsched'
            configure_vsched
            configure_vsched_nova
            configure_vsched_placement
            if is_service_enabled key && is_service_enabled vsched-api; then
                create_vsched_accounts
            fi
            ;;
        stack-extra)
            echo_summary 'Starting vsched'
            configure_vsched_host
            init_vsched
            start_vsched
            ;;
        unstack-)
            stop_vsched
            ;;
        clean-)
            cleanup_vsched
            ;;
    esac
fi
