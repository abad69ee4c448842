#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
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
# The browser's engine without windows, for the tests of the page. Lab nodes,
# which have what tools/services installs, run none of them.
PAGE_PACKAGES=(chromium-headless-shell)
# Which tests may share the CPUs, and how processes divide them.
WORKERS=$VSCHED_TOOLS/shared-workers.yaml
# Tests that run in a lab node, and nowhere else, by the run. There, to import
# all others only to find these takes minutes. Xen's scheduler is chosen at the
# start of a node: there is a run for each.
declare -A NODE_TESTS=(
    [node]=vsched_agent/tests/functional/node
    [xen-rtds]=vsched_agent/tests/functional/xen
    [xen-credit2]=vsched_agent/tests/functional/xen_weights
    [xen-credit]=vsched_agent/tests/functional/xen_weights
)
XEN_RUNS=(xen-rtds xen-credit2 xen-credit)
NODE='^vsched_agent\.tests\.functional\.(node|xen|xen_weights)\.'
# Needs a checkout of devstack.
DEVSTACK='^tools\.tests\.functional\.test_devstack\.'
# The beginning of the release of the node's kernel; the default one's if empty.
NODE_KERNEL=''
# All tests of the node take a quarter of an hour on two free CPUs.
NODE_LIMIT_S=1800
# To build its image takes up to half an hour.
NODE_BUILD_LIMIT_S=3600
# Whether the node's tests follow the others.
WITH_NODE=''
# No test takes as long without an event, and all of them together don't
# either.
SILENCE_S=${VSCHED_TEST_SILENCE_S:-1800}
LIMIT_S=${VSCHED_TEST_LIMIT_S:-5200}
# What runs beside the tests has ended by then.
BESIDE_LIMIT_S=1800
# How long workers, and then stestr, may take to end when they are told to.
GRACE_S=${VSCHED_TEST_GRACE_S:-10}
# Prints a stream as it comes. stestr's module lacks an import that is made
# elsewhere where stestr calls it.
PRINTER='import subunit.test_results
from stestr import subunit_trace
subunit_trace.main()'
# The run that goes on, which is a process group of its own, and the process
# that keeps and prints its stream.
RUNNING=''
PRINTING=''
# What runs beside the tests: the command and its process.
COMMAND=''
BESIDE=''
# What builds and boots the lab node.
BUILDING=''

usage() {
    cat <<USAGE
usage: tools/test.sh [--unit | --functional | --node [RELEASE] | --xen]
                     [--with-node] [--beside COMMAND]

Runs the unit tests in parallel, then the functional tests: those that wait
for services in parallel, those that measure one after the other. The options
choose one of the two. --node boots a compute node with systemd, cgroup v2 and
KVM in emulation (tools/lab.sh) and runs the tests that need one in it, with
the kernel whose release begins so; --xen does the same with a host of Xen, once
for each of its schedulers. --with-node runs the node's tests after the others.
Its image is built at low priority beside them, until those begin that measure,
and again if that failed. Where this machine cannot have one, since Debian's
archive cannot be reached, the last lines say so. The last line counts the
results, also of a run that is interrupted, hangs or is killed: a test that
began and did not end has failed. The exit code is 0 when nothing failed. Run
as root: the functional tests need libvirt and the kernel's scheduler.

COMMAND runs at low priority beside the tests, for $BESIDE_LIMIT_S s at most, and has
ended before those begin that measure. Its output and exit code are in the
files beside.log and beside.status of VSCHED_TEST_RESULTS.

Environment: VSCHED_TEST_RESULTS, an empty directory for the streams;
VSCHED_TEST_SILENCE_S ($SILENCE_S) and VSCHED_TEST_LIMIT_S ($LIMIT_S), after
which a run without events, and all of it, is ended; VSCHED_DEVSTACK, a
checkout of openstack/devstack. Without it one is fetched; where that is not
possible its plugin is run with doubles of devstack's functions only.
USAGE
}

# failure TEXT: counts one failure that is no test's.
failure() {
    complain "$*"
    echo "$*" >>"$RESULTS/failures"
}

# omission TEXT: tells what is not run on this machine, in the last lines too.
omission() {
    say "not run here: $*"
    echo "not run here: $*" >>"$RESULTS/omissions"
}

# running: true while a process of the run lives.
running() {
    kill -0 "$RUNNING" 2>/dev/null ||
        kill -s 0 -- "-$RUNNING" 2>/dev/null
}

# end_workers SIGNAL: stestr reads what its workers have sent to the end,
# says that they died and then ends by itself.
end_workers() {
    pkill -"$1" -g "$RUNNING" -f stestr.subunit_runner || true
    wait_for "$GRACE_S" not running || true
}

not() {
    ! "$@"
}

# end_run SIGNAL: ends the run that goes on: first its workers, by SIGNAL,
# so that all they have done is in the stream.
end_run() {
    end_workers "$1"
    local signal
    for signal in TERM KILL; do
        running || break
        kill -s "$signal" -- "-$RUNNING" 2>/dev/null || true
        wait_for "$GRACE_S" not running || true
    done
}

# watch STREAM: waits for the run. One that hangs is ended; on SIGABRT its
# workers print where they are.
watch() {
    local silent_s
    while kill -0 "$RUNNING" 2>/dev/null; do
        sleep 1
        silent_s=$(($(date +%s) - $(stat -c %Y "$1")))
        if ((silent_s > SILENCE_S || SECONDS > LIMIT_S)); then
            complain "ended: no event for $silent_s s, $SECONDS s in all"
            end_run ABRT
        fi
    done
}

# left_by_tests: prints the processes that tests of the run have started and
# not ended, by number. Those in a session of their own are in no group of it.
left_by_tests() {
    grep -lsxzF "VSCHED_TEST_RUN=$RESULTS" /proc/[0-9]*/environ |
        cut -d / -f 3
}

none_left() {
    [[ -z $(left_by_tests) ]]
}

# end_left: ends them, and names them.
end_left() {
    local signal pids
    for signal in TERM KILL; do
        mapfile -t pids < <(left_by_tests)
        ((${#pids[@]})) || return 0
        say "ended by $signal, as tests have left it running:"
        ps -o pid=,args= -p "${pids[*]}" || true
        kill -s "$signal" "${pids[@]}" 2>/dev/null || true
        wait_for "$GRACE_S" none_left || true
    done
}

# conclude: waits until the stream of the ended run is complete. Its exit
# status is that of the run.
conclude() {
    local status=0 left=$RUNNING
    wait "$RUNNING" || status=$?
    # Workers outlive a stestr that was killed.
    kill -s KILL -- "-$left" 2>/dev/null || true
    end_left
    wait "$PRINTING" || true
    RUNNING=''
    return "$status"
}

# run NAME REGEX OPTION...: one run of stestr, with a repository of its own.
# Its processes import only the modules whose tests they run.
run() {
    local name=$1 regex=$2 kind=functional
    shift 2
    [[ $name != unit ]] || kind=unit
    PYTHON="${PYTHON:-$VENV/bin/python} $VSCHED_TOOLS/stestr_worker.py $kind" \
        record "$name" "$VENV/bin/stestr" --repo-url "$RESULTS/$name" \
        run --subunit "$@" "$regex"
}

# start_build LIMIT_S COMMAND...: builds and boots a node.
start_build() {
    setsid setpriv --pdeathsig TERM timeout -k 60 "$@" &
    BUILDING=$!
}

# await_build: waits for its end. Its exit status is that of the command.
await_build() {
    [[ -n $BUILDING ]] || return 0
    local status=0
    wait "$BUILDING" || status=$?
    BUILDING=''
    return "$status"
}

# build_beside: starts that with the CPU time that the tests leave. Whatever
# comes of it, run_node does the same on a machine that is free.
build_beside() {
    [[ -n $WITH_NODE ]] || return 0
    start_build "$BESIDE_LIMIT_S" nice -n 19 "$VSCHED_TOOLS/lab.sh" kvm \
        >"$RESULTS/build.log" 2>&1 </dev/null
}

# run_node NAME: one run of stestr's worker in a lab node. A node that does not
# boot, or dies, is a failure; without the former nothing more can be run.
run_node() {
    local name=$1 lab=("$VSCHED_TOOLS/lab.sh") kind=kvm status=0 why
    # What build_beside has started: the unit tests don't wait for it.
    await_build || true
    # The limit of all tests holds for those of the node as well, if they
    # follow others.
    local limit_s=$NODE_BUILD_LIMIT_S
    if [[ -n $WITH_NODE ]] && ((LIMIT_S - SECONDS < limit_s)); then
        limit_s=$((LIMIT_S - SECONDS))
    fi
    if ((limit_s <= 0)); then
        failure "$name tests did not begin within the limit of all tests"
        return 1
    fi
    [[ -z $NODE_KERNEL ]] || lab+=(--kernel "$NODE_KERNEL")
    if [[ $name == xen-* ]]; then
        kind=xen
        lab+=(--scheduler "${name#xen-}")
    fi
    # The image is built first: for as long there is no event.
    start_build "$limit_s" "${lab[@]}" "$kind"
    await_build || status=$?
    if [[ $status != 0 ]]; then
        why=$("${lab[@]}" --why-not "$kind") || true
        if [[ -n $WITH_NODE && -n $why ]]; then
            omission "tests of the lab node (--node): $why"
        else
            failure "$name tests: the node was not built in $limit_s s, or" \
                "does not boot (status $status)${why:+: $why}"
        fi
        return 1
    fi
    if [[ -z $WITH_NODE ]]; then
        LIMIT_S=$((SECONDS + ${VSCHED_TEST_LIMIT_S:-$NODE_LIMIT_S}))
    elif ((SECONDS + NODE_LIMIT_S < LIMIT_S)); then
        LIMIT_S=$((SECONDS + NODE_LIMIT_S))
    fi
    record "$name" "${lab[@]}" "$kind" -- env VSCHED_REQUIRE=libvirt \
        VSCHED_TEST_PATIENCE_S=240 \
        OS_TEST_TIMEOUT=900 OS_STDOUT_CAPTURE=1 OS_STDERR_CAPTURE=1 \
        PYTHONDONTWRITEBYTECODE=1 PYTHONFAULTHANDLER=1 PYTHONWARNINGS=ignore \
        python -m stestr.subunit_runner.run discover -t . \
        "${NODE_TESTS[$name]}"
}

# record NAME COMMAND...: one run of a command that writes a stream. The
# stream is kept as it comes, and not taken from stestr's repository, which
# has it only if stestr lives to the end.
record() {
    local name=$1 status=0 stream=$RESULTS/$1.subunit
    shift
    mkdir -p "$RESULTS/$name" "$RESULTS/coverage"
    say "$name tests:"
    : >"$stream"
    mkfifo "$RESULTS/$name/pipe"
    # What interrupts this script must not cut the stream.
    (
        trap '' INT TERM
        tee -p "$stream" <"$RESULTS/$name/pipe" |
            "$VENV/bin/python" -u -c "$PRINTER"
    ) &
    PRINTING=$!
    # A process group of its own; it ends if this script is killed.
    VSCHED_TEST_RUN=$RESULTS setsid setpriv --pdeathsig TERM "$@" \
        >"$RESULTS/$name/pipe" &
    RUNNING=$!
    watch "$stream"
    conclude || status=$?
    echo "$status" >"$RESULTS/$name.status"
}

# check_coverage: fails if the unit tests run too little of the code;
# pyproject.toml has the limit. Nothing is checked when they were cut or have
# failed: that counts already, and covers less.
check_coverage() {
    local -x COVERAGE_FILE=$RESULTS/coverage/data
    local run=$RESULTS/coverage/run file
    mkdir "$run"
    for file in unit.subunit unit.status; do
        ln -s "$RESULTS/$file" "$run/$file"
    done
    "$VENV/bin/python" "$VSCHED_TOOLS/subunit_counts.py" "$run" \
        >/dev/null || return 0
    say 'coverage of the unit tests:'
    "$VENV/bin/coverage" combine --quiet &&
        "$VENV/bin/coverage" report --format=total --precision=2 ||
        failure 'the unit tests cover less than fail_under of pyproject.toml'
}

# repeat_alone NAME...: runs the few tests that failed in runs on a busy or
# measured machine once more, each alone. The last lines name them all the
# same: each is a defect to find.
repeat_alone() {
    local name regex regexes=()
    for name in "$@"; do
        regex=$("$VENV/bin/python" "$VSCHED_TOOLS/subunit_counts.py" \
            --repeatable "$RESULTS/$name.subunit")
        [[ -z $regex ]] || regexes+=("$regex")
    done
    ((${#regexes[@]})) || return 0
    say 'functional tests that failed are repeated alone'
    regex=$(
        IFS='|'
        echo "${regexes[*]}"
    )
    run isolated "$regex" --serial
}

# compile_modules: compiles the project's own modules once. One that cannot be
# compiled fails where it is imported.
compile_modules() {
    local folders=()
    mapfile -t folders < <(compgen -G "$VSCHED_ROOT/[a-z]*_[a-z]*/")
    "$VENV/bin/python" -m compileall -q -q -j 2 -x node_modules \
        "${folders[@]}" "$VSCHED_ROOT/benchmarks" "$VSCHED_ROOT/tools" || true
}

# shared_tests: prints a regular expression of the tests that may share the
# CPUs.
shared_tests() {
    sed -n "s/^ *- '\(\^.*\)'\$/\1/p" "$WORKERS" | paste -sd '|'
}

# start_beside: starts what runs beside the tests, in a process group of its
# own and with the CPU time that they leave.
start_beside() {
    [[ -n $COMMAND ]] || return 0
    # timeout ends the whole group; the shell outlives that to tell the status.
    setsid setpriv --pdeathsig TERM nice -n 19 \
        timeout -k 10 "$BESIDE_LIMIT_S" bash -c \
        'trap : TERM; "$1"; echo $? >"$2"' beside "$COMMAND" \
        "$RESULTS/beside.status" \
        >"$RESULTS/beside.log" 2>&1 </dev/null &
    BESIDE=$!
}

# await_beside: waits for its end. Tests that measure would measure it too.
await_beside() {
    [[ -n $BESIDE ]] || return 0
    wait "$BESIDE" || true
    BESIDE=''
}

# end_beside: ends it.
end_beside() {
    [[ -n $BESIDE ]] || return 0
    kill -s TERM -- "-$BESIDE" 2>/dev/null || true
    await_beside
}

# prepare: what the functional tests stand on.
prepare() {
    "$VSCHED_TOOLS/guest/build.sh" || return 1
    local service
    for service in "${VSCHED_SERVICES[@]}"; do
        ensure "$service" || return 1
    done
    ensure_devstack
    export VSCHED_DEVSTACK
}

# shellcheck disable=SC2329  # called by a trap
# finish: the last words, whatever happened before.
finish() {
    local code=$? status=0
    trap '' INT TERM
    if [[ -n $RUNNING ]]; then
        end_run TERM
        conclude || true
    elif [[ $code != 0 && ! -s $RESULTS/failures ]]; then
        # This script was interrupted or has gone wrong between two runs.
        failure "ended with status $code before all was run"
    fi
    if [[ -n $BUILDING ]]; then
        kill -s TERM -- "-$BUILDING" 2>/dev/null || true
        wait "$BUILDING" || true
    fi
    end_beside
    stop_started || true
    "$VENV/bin/python" "$VSCHED_TOOLS/subunit_counts.py" "$RESULTS" \
        >"$RESULTS/counts" || status=1
    # There may be no Python to count with; then nothing has run.
    [[ -s $RESULTS/counts ]] || echo '0 passed, 1 failed' >"$RESULTS/counts"
    if [[ $status != 0 ]]; then
        say "streams kept: subunit-ls --no-passthrough <$RESULTS/NAME.subunit"
    fi
    cat "$RESULTS/counts"
    # Who gave the directory removes it.
    [[ $status != 0 || -n ${VSCHED_TEST_RESULTS:-} ]] || rm -rf "$RESULTS"
    exit "$status"
}

main() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --unit | --functional)
                RUNS=("${1#--}")
                shift
                ;;
            --beside)
                COMMAND=${2:?--beside needs a command}
                shift 2
                ;;
            --node)
                RUNS=(node)
                shift
                if [[ $# -gt 0 && $1 != --* ]]; then
                    NODE_KERNEL=$1
                    shift
                fi
                ;;
            --xen)
                RUNS=("${XEN_RUNS[@]}")
                shift
                ;;
            --with-node)
                WITH_NODE=yes
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
    if [[ ${RUNS[*]} == node ]]; then
        WITH_NODE=''
    elif [[ -n $WITH_NODE && ${RUNS[*]} == xen-* ]]; then
        usage >&2
        exit 2
    elif [[ -n $WITH_NODE ]]; then
        RUNS+=(node)
    fi
    VENV=$VSCHED_ROOT/.venv
    RESULTS=${VSCHED_TEST_RESULTS:-$(mktemp -d \
        "${TMPDIR:-/tmp}/vsched-test.XXXXXX")}
    cd "$VSCHED_ROOT"
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap finish EXIT

    local packages=("${PYTHON_PACKAGES[@]}")
    if [[ ${RUNS[*]} == *functional* ]]; then
        packages+=("${GUEST_PACKAGES[@]}" "${LIBVIRT_PACKAGES[@]}"
            "${TEST_PACKAGES[@]}" "${PAGE_PACKAGES[@]}" rabbitmq-server
            postgresql mariadb-server)
    fi
    if ! ensure_packages "${packages[@]}" ||
        ! ensure_venv "$VENV" "$EXTRAS"; then
        failure 'nothing to test with'
        exit 1
    fi
    export PATH=$VENV/bin:$PATH
    export PYTHONDONTWRITEBYTECODE=1 OS_STDOUT_CAPTURE=1
    export OS_STDERR_CAPTURE=1 OS_TEST_TIMEOUT=${OS_TEST_TIMEOUT:-900}
    export PYTHONFAULTHANDLER=1
    # Tests start hundreds of processes, which would compile all modules again
    # and import a DNS resolver that nobody asks.
    compile_modules
    export EVENTLET_NO_GREENDNS=yes

    # Where a service is missing its tests fail one by one, for minutes: no
    # test is run then.
    if [[ ${RUNS[*]} == *functional* ]] && ! prepare; then
        failure 'not all that the functional tests need could be prepared'
        exit 1
    fi

    start_beside
    build_beside
    local name
    for name in "${RUNS[@]}"; do
        if [[ -n ${NODE_TESTS[$name]:-} ]]; then
            run_node "$name" || break
            continue
        fi
        if [[ $name == unit ]]; then
            PYTHON="$VENV/bin/coverage run" \
                COVERAGE_FILE=$RESULTS/coverage/data \
                run unit '\.tests\.unit\.'
            check_coverage
            continue
        fi
        # Tests fail, and don't skip, where one of these is missing.
        # What libvirtd serves is called libvirt there.
        VSCHED_REQUIRE=$(
            IFS=,
            echo "${VSCHED_SERVICES[*]/%libvirtd/libvirt},nginx,nova,prometheus,chromium"
        )
        export VSCHED_REQUIRE
        hold_host
        # Those that wait for services may share the CPUs; those that measure
        # what the kernel gives may not. stestr ignores the file of workers
        # where it would take one by itself.
        local shared
        shared=$(shared_tests)
        run shared "$shared" --concurrency 2 --worker-file "$WORKERS"
        await_beside
        await_build || true
        say 'not run here: tests of lab nodes, see --node and --xen' \
            "${WITH_NODE:+(those of --node follow)}"
        local excluded="$shared|$NODE"
        if [[ -z $VSCHED_DEVSTACK ]]; then
            say 'not run here: devstack-smoke.sh, since openstack/devstack' \
                'was not fetched and VSCHED_DEVSTACK names no checkout'
            excluded+="|$DEVSTACK"
        fi
        run host '\.tests\.functional\.' --serial \
            --exclude-regex "$excluded"
        repeat_alone shared host
    done
    await_beside
}

main "$@"
