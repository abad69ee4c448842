# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/services.sh: the processes that were started here, and
# who uses them. VSCHED_RUN_DIR/NAME/ holds
#   started    pid and start time of the process
#   users/PID  start time of a run that depends on it
# A service NAME is made of answers_NAME (true when it can be used),
# start_NAME and, where needed, busy_NAME (prints why it can't be stopped),
# stop_NAME (instead of ending the process) and clean_NAME (afterwards).

# Who this is among the users: a run by its pid, or "kept", who never dies.
VSCHED_USER=${VSCHED_USER:-$$}

# start_time PID: the kernel's start time of the process, in ticks. With
# the pid it names one process for ever: pids are used again, pairs aren't.
start_time() {
    local line fields
    read -r line 2>/dev/null <"/proc/$1/stat" || return 1
    # The second field may hold spaces and brackets: count after its end.
    read -r -a fields <<<"${line##*) }"
    echo "${fields[19]}"
}

# gone PID STARTED: true when that process has ended. STARTED is empty when it
# had ended before its start time was read.
gone() {
    local started
    started=$(start_time "$1") || return 0
    [[ $started != "$2" ]]
}

# wait_for SECONDS COMMAND...: until COMMAND succeeds.
wait_for() {
    local deadline
    deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [[ $SECONDS -lt $deadline ]] || return 1
        sleep 0.2
    done
}

# port_answers PORT: something listens on the loopback there.
port_answers() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# spawn NAME USER COMMAND...: starts the daemon as that user in a session of
# its own, so that a Ctrl-C meant for the run does not hit it. Sets SPAWNED.
spawn() {
    local name=$1 user=$2
    shift 2
    setsid setpriv --reuid="$user" --regid="$user" --init-groups "$@" \
        >"$VSCHED_RUN_DIR/$name/log" 2>&1 </dev/null &
    SPAWNED=$!
    disown "$SPAWNED"
}

# await NAME PID SECONDS: until the daemon answers; its log, if it doesn't.
await() {
    local started deadline
    started=$(start_time "$2")
    deadline=$((SECONDS + $3))
    until "answers_$1"; do
        if gone "$2" "$started" || [[ $SECONDS -ge $deadline ]]; then
            tail -n 20 "$VSCHED_RUN_DIR/$1/log" >&2
            complain "$1: does not start"
            gone "$2" "$started" || kill "$2"
            return 1
        fi
        sleep 0.2
    done
    echo "$2 $started" >"$VSCHED_RUN_DIR/$1/started"
    say "$1: started, pid $2"
}

# started_pid NAME: prints the pid of what was started here, if it lives.
started_pid() {
    local pid started
    read -r pid started 2>/dev/null <"$VSCHED_RUN_DIR/$1/started" ||
        return 1
    ! gone "$pid" "$started" || return 1
    echo "$pid"
}

# ensure NAME: uses NAME where it answers, starts it where it doesn't.
ensure() {
    local name=$1 status=0 lock
    mkdir -p "$VSCHED_RUN_DIR/$name/users" "$VSCHED_DATA_DIR"
    # Two runs that start at once must not both find it missing. The lock
    # must not reach the daemon, which would hold it for ever.
    exec {lock}>"$VSCHED_RUN_DIR/$name.lock"
    flock "$lock"
    if "answers_$name"; then
        say "$name: already running"
    else
        say "$name: starting"
        rm -f "$VSCHED_RUN_DIR/$name/started"
        eval "start_$name $lock>&-" || status=$?
    fi
    if [[ $status == 0 ]] && started_pid "$name" >/dev/null; then
        start_time $$ >"$VSCHED_RUN_DIR/$name/users/$VSCHED_USER"
    fi
    exec {lock}>&-
    return "$status"
}

# other_users NAME: prints who else uses NAME, forgetting the dead.
other_users() {
    local file user
    for file in "$VSCHED_RUN_DIR/$1"/users/*; do
        [[ -e $file ]] || continue
        user=${file##*/}
        if [[ $user == "$VSCHED_USER" ]]; then
            continue
        elif [[ $user =~ ^[0-9]+$ ]] && gone "$user" "$(<"$file")"; then
            rm -f "$file"
        else
            echo "$user"
        fi
    done
}

# hook FUNCTION: calls it, where a service has one.
hook() {
    ! declare -F "$1" >/dev/null || "$1"
}

# stop_process PID: ends it and waits for that.
stop_process() {
    local started
    started=$(start_time "$1")
    kill "$1"
    wait_for 60 gone "$1" "$started"
}

# stop NAME PID: by the service's own way, or by ending the process.
stop() {
    if declare -F "stop_$1" >/dev/null; then
        "stop_$1"
    else
        stop_process "$2"
    fi
}

# leave NAME: this run needs NAME no longer; the last user stops it.
leave() {
    local name=$1 pid others reason lock
    # By hand, a service can be stopped that its last user had to leave.
    [[ $VSCHED_USER == kept && -e $VSCHED_RUN_DIR/$name/started ||
        -e $VSCHED_RUN_DIR/$name/users/$VSCHED_USER ]] || return 0
    exec {lock}>"$VSCHED_RUN_DIR/$name.lock"
    flock "$lock"
    rm -f "$VSCHED_RUN_DIR/$name/users/$VSCHED_USER"
    others=$(other_users "$name" | paste -sd ' ')
    reason=$(hook "busy_$name")
    if ! pid=$(started_pid "$name"); then
        say "$name: gone already"
    elif [[ -n $others ]]; then
        say "$name: left running, in use by $others"
    elif [[ -n $reason ]]; then
        say "$name: left running, $reason"
    else
        if stop "$name" "$pid"; then
            say "$name: stopped"
            hook "clean_$name"
            rm -rf "${VSCHED_RUN_DIR:?}/$name" "${VSCHED_DATA_DIR:?}/$name"
        else
            complain "$name: pid $pid does not stop"
        fi
    fi
    exec {lock}>&-
}

# hold_host: one measurement at a time. Two that share the CPUs would take
# the bandwidth from each other, and both would be wrong. Held until exit;
# what this run starts itself does not wait for it.
hold_host() {
    [[ -z ${VSCHED_HOST_HELD:-} ]] || return 0
    mkdir -p "$VSCHED_RUN_DIR"
    exec {VSCHED_HOST_LOCK}>"$VSCHED_RUN_DIR/host.lock"
    if ! flock --nonblock "$VSCHED_HOST_LOCK"; then
        say 'waiting for another run on this machine to end'
        flock "$VSCHED_HOST_LOCK"
    fi
    export VSCHED_HOST_HELD=1
}
