#!/usr/bin/env bash
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
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
