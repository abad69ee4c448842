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
# Runs all tests, the functional ones too, and ends with the line
# "N passed, N failed" over all of them. Installs what is missing (Debian
# packages, a virtual environment in .venv with Nova, placement and keystone
# beside the project, the tiny guest), uses the services that run here and
# starts those that don't; stops what it started.

set -euo pipefail

# shellcheck source=tools/services.sh
. "$(dirname "${BASH_SOURCE[0]}")/services.sh"

EXTRAS=standalone,test,openstack
RUNS=(unit functional)
# Tests with real Nova, placement and keystone.
OPENSTACK='^(nova_filters\.tests\.functional'
OPENSTACK+='|vsched_[a-z]+\.tests\.functional\.(nova|placement))\.'
STREAMS=()
# Failures that leave no stream: a part that couldn't be prepared, modules
# that can't be imported, runs without tests.
FAILED=0
# No test takes as long without a word, and all of them together don't either.
SILENCE_S=${VSCHED_TEST_SILENCE_S:-900}
LIMIT_S=${VSCHED_TEST_LIMIT_S:-4500}
# The run that goes on.
RUNNING=''
# Where the machine under this one takes the CPUs for a moment, a test of what
# the scheduler gives fails, and so may a call that waits for another process.
# So many failures may be that; what passes when it is run again was.
AGAIN_MOST=3
AGAIN=()

usage() {
    cat <<USAGE
usage: tools/test.sh [--unit | --functional]

Runs the unit tests in parallel, then the functional tests one after the
other; the options choose one of the two. The last line counts the results.
The exit code is 0 when nothing failed. Run as root: the functional tests
need libvirt and the kernel's scheduler.
USAGE
}

failure() {
    complain "$*"
    FAILED=$((FAILED + 1))
}

# all_passed STREAM: true when nothing in it failed.
all_passed() {
    "$VENV/bin/python" "$VSCHED_TOOLS/subunit_counts.py" "$1" >/dev/null
}

# below PID: it and all processes that descend from it.
below() {
    local child
    echo "$1"
    for child in $(pgrep -P "$1"); do
        below "$child"
    done
}

# abandon SIGNAL: ends the run that goes on.
abandon() {
    local pid
    for pid in $(below "$RUNNING"); do
        # The workers say where they are on SIGABRT; stestr collects what
        # they have done and then ends by itself.
        if [[ $1 != ABRT ]] || grep -qs subunit_runner "/proc/$pid/cmdline"
        then
            kill -s "$1" "$pid" 2>/dev/null || true
        fi
    done
}

# watched OUTPUT COMMAND...: runs it, its output in a file too. A run that
# hangs is ended, with the place where it hangs in the output.
watched() {
    local output=$1 status=0 silent_s
    shift
    : >"$output"
    "$@" > >(tee "$output") 2>&1 &
    RUNNING=$!
    while kill -0 "$RUNNING" 2>/dev/null; do
        sleep 1
        silent_s=$(($(date +%s) - $(stat -c %Y "$output")))
        if ((silent_s > SILENCE_S || SECONDS > LIMIT_S)); then
            failure "ended: silent for $silent_s s, $SECONDS s in all"
            abandon ABRT
            sleep 10
            abandon TERM
            sleep 10
            abandon KILL
        fi
    done
    wait "$RUNNING" || status=$?
    RUNNING=''
    return "$status"
}

# run NAME REGEX OPTION...: one run of stestr, with a repository of its own,
# so that a run which never began isn't mistaken for the one before it.
run() {
    local name=$1 regex=$2 status=0
    shift 2
    mkdir -p "$RESULTS/$name"
    say "$name tests:"
    watched "$RESULTS/$name.output" \
        "$VENV/bin/stestr" --repo-url "$RESULTS/$name" run "$@" \
        "$regex" || status=$?
    if "$VENV/bin/stestr" --repo-url "$RESULTS/$name" last --subunit \
        >"$RESULTS/$name.subunit" 2>/dev/null &&
        [[ -s $RESULTS/$name.subunit ]]; then
        STREAMS+=("$RESULTS/$name.subunit")
        # A worker may die between two tests: nothing failed, yet not all
        # was run.
        if [[ $status != 0 ]] && all_passed "$RESULTS/$name.subunit"; then
            failure "$name tests: none failed, but stestr said $status"
        fi
    else
        failure "$name tests: none ran, stestr said $status"
    fi
}

# once_more NAME: what has failed in a run, if it is little, once again and
# by itself. That it was needed is said; what fails again has failed.
once_more() {
    local name=$1 failing
    failing=$("$VENV/bin/stestr" --repo-url "$RESULTS/$name" failing --list |
        sort -u) || true
    # Of a class that could not be set up no single test has failed.
    [[ -n $failing && $failing != *' '* ]] || return 0
    [[ $(wc -l <<<"$failing") -le $AGAIN_MOST ]] || return 0
    echo "$failing" >"$RESULTS/$name.failing"
    run "$name-again" . --serial --load-list "$RESULTS/$name.failing"
    if [[ ${STREAMS[-1]} == */"$name-again.subunit" ]]; then
        AGAIN+=(--again "${STREAMS[-1]}")
        unset 'STREAMS[-1]'
    fi
    say 'failed at first and were run again, of which the count below has' \
        'the last result:'
    say "$failing"
}

# prepare: what the functional tests stand on.
prepare() {
    "$VSCHED_TOOLS/guest/build.sh" || return 1
    local service
    for service in "${VSCHED_SERVICES[@]}"; do
        ensure "$service" || return 1
    done
}

# shellcheck disable=SC2329  # called by a trap
# finish: the last words, whatever happened before.
finish() {
    local code=$? status=0
    trap '' INT TERM
    [[ -z $RUNNING ]] || abandon TERM
    stop_started || true
    # This script itself may have gone wrong before all was run.
    [[ $code == 0 || $FAILED -gt 0 ]] || FAILED=1
    if [[ -x $VENV/bin/python ]]; then
        "$VENV/bin/python" "$VSCHED_TOOLS/subunit_counts.py" \
            --failed "$FAILED" "${AGAIN[@]}" "${STREAMS[@]}" \
            >"$RESULTS/counts" ||
            status=1
    else
        status=1
    fi
    [[ -s $RESULTS/counts ]] ||
        echo "0 passed, $((FAILED > 0 ? FAILED : 1)) failed" \
            >"$RESULTS/counts"
    if [[ $status != 0 ]]; then
        say "results kept: stestr --repo-url $RESULTS/unit failing" \
            "(or services, openstack, host, each maybe with -again)"
    fi
    cat "$RESULTS/counts"
    [[ $status != 0 ]] || rm -rf "$RESULTS"
    exit "$status"
}

main() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --unit | --functional)
                RUNS=("${1#--}")
                shift
                ;;
            -h | --help)
                usage
                exit 0
                ;;
            *)
                usage >&2
                exit 2
                ;;
        esac
    done
    VENV=$VSCHED_ROOT/.venv
    RESULTS=$(mktemp -d "${TMPDIR:-/tmp}/vsched-test.XXXXXX")
    cd "$VSCHED_ROOT"
    # An interrupted run has not passed.
    trap 'FAILED=$((FAILED + 1)); exit 130' INT TERM
    trap finish EXIT

    local packages=("${PYTHON_PACKAGES[@]}")
    if [[ ${RUNS[*]} == *functional* ]]; then
        packages+=("${GUEST_PACKAGES[@]}" "${LIBVIRT_PACKAGES[@]}"
            rabbitmq-server postgresql mariadb-server)
    fi
    if ! ensure_packages "${packages[@]}" ||
        ! ensure_venv "$VENV" "$EXTRAS"; then
        failure 'nothing to test with'
        exit 1
    fi
    export PATH=$VENV/bin:$PATH
    export PYTHONDONTWRITEBYTECODE=1 OS_STDOUT_CAPTURE=1
    export OS_STDERR_CAPTURE=1 OS_TEST_TIMEOUT=${OS_TEST_TIMEOUT:-300}
    export PYTHONFAULTHANDLER=1

    local name
    for name in "${RUNS[@]}"; do
        if [[ $name == unit ]]; then
            run unit '\.tests\.unit\.'
            continue
        fi
        prepare || failure 'not all that the tests need could be prepared'
        # Tests fail, and don't skip, where one of these is missing.
        # What libvirtd serves is called libvirt there.
        VSCHED_REQUIRE=$(
            IFS=,
            echo "${VSCHED_SERVICES[*]/%libvirtd/libvirt},nova"
        )
        export VSCHED_REQUIRE
        hold_host
        # Those that need services only may share the CPUs; those that
        # measure what the kernel gives may not.
        run services '^vsched_(api|lib)\.tests\.functional\.'
        once_more services
        # Nova's own tests replace parts of the process that they run in.
        run openstack "$OPENSTACK"
        once_more openstack
        run host '^vsched_(agent|standalone)\.tests\.functional\.' \
            --serial --exclude-regex "$OPENSTACK"
        once_more host
    done
}

main "$@"
