# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/lab.sh: a node that runs. Its scratch folder has its disk,
# its console and the sockets that it is controlled by.

LAB_CPUS=${VSCHED_LAB_CPUS:-2}
LAB_MEMORY_MIB=${VSCHED_LAB_MEMORY_MIB:-3072}
# On the console when systemd has started all.
LAB_READY=LAB-READY
LAB_BOOT_S=300

# machine_start SCRATCH IMAGE RELEASE OPTION...: starts QEMU.
machine_start() {
    local scratch=$1 image=$2 release=$3
    shift 3
    ln -s "$image/id_ed25519" "$scratch/key"
    # Without smap: the emulation of nested guests fails with it.
    qemu-system-x86_64 -name vsched-lab -machine q35 \
        -accel tcg,thread=multi,tb-size=512 -cpu max,-smap,-la57 \
        -smp "$LAB_CPUS" -m "$LAB_MEMORY_MIB" -nodefaults -display none \
        -no-reboot -serial "file:$scratch/console" \
        -qmp "unix:$scratch/qmp,server=on,wait=off" \
        -kernel "$image/vmlinuz-$release" \
        -initrd "$image/initrd.img-$release" \
        -append "root=/dev/vda rw console=ttyS0 quiet mitigations=off \
tsc=reliable systemd.show_status=0" \
        -drive "file=$scratch/disk.qcow2,if=none,id=disk,cache=unsafe" \
        -device virtio-blk-pci,drive=disk \
        -netdev "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-:22" \
        -device virtio-net-pci,netdev=net,romfile= \
        -device virtio-rng-pci "$@" >"$scratch/qemu.log" 2>&1 </dev/null &
    echo $! >"$scratch/pid"
    wait_for 30 test -S "$scratch/qmp" || machine_lost "$scratch"
    machine_monitor "$scratch" 'info usernet' |
        awk '/HOST_FORWARD/ { print $4 }' >"$scratch/port"
}

# machine_monitor SCRATCH COMMAND: has QEMU's monitor run a command.
machine_monitor() {
    python3 "$VSCHED_TOOLS/lab/monitor.py" "$1/qmp" "$2"
}

machine_lost() {
    tail -n 20 "$1/qemu.log" "$1/console" >&2 || true
    complain 'lab: the node does not run'
    return 1
}

# machine_boot SCRATCH IMAGE RELEASE: boots; returns when all has started.
machine_boot() {
    local began=$SECONDS
    qemu-img create -q -f qcow2 -b "$2/node.qcow2" -F qcow2 "$1/disk.qcow2"
    machine_start "$1" "$2" "$3"
    wait_for "$LAB_BOOT_S" grep -q "$LAB_READY" "$1/console" ||
        machine_lost "$1"
    machine_connect "$1"
    say "lab: booted $3 in $((SECONDS - began)) s"
}

# machine_keep SCRATCH IMAGE RELEASE: keeps the booted node for restores.
machine_keep() {
    machine_run "$1" 'sync; fstrim / || true'
    machine_monitor "$1" 'savevm ready'
    machine_monitor "$1" stop
    cp "$1/disk.qcow2" "$2/ready-$3.new"
    mv "$2/ready-$3.new" "$2/ready-$3.qcow2"
    machine_monitor "$1" cont
}

# machine_restore SCRATCH IMAGE RELEASE: continues a kept node.
machine_restore() {
    local began=$SECONDS
    cp "$2/ready-$3.qcow2" "$1/disk.qcow2"
    machine_start "$1" "$2" "$3" -loadvm ready
    machine_connect "$1"
    say "lab: restored $3 in $((SECONDS - began)) s"
}

# machine_connect SCRATCH: waits until the node takes commands, and sets its
# clock.
machine_connect() {
    wait_for 120 machine_answers "$1" || machine_lost "$1"
    machine_run "$1" "date -s @$(date +%s.%N) >/dev/null"
}

machine_answers() {
    machine_run "$1" true 2>/dev/null </dev/null
}

# machine_run SCRATCH COMMAND: runs a line of shell in the node.
machine_run() {
    ssh -q -i "$1/key" -o StrictHostKeyChecking=no \
        -o UserKnownHostsFile=/dev/null -o ConnectTimeout=60 \
        -o ControlMaster=auto -o "ControlPath=$1/ssh" \
        -o ControlPersist=600 -p "$(<"$1/port")" root@127.0.0.1 "$2"
}

# machine_put_tree SCRATCH: replaces the node's tree by this one.
machine_put_tree() {
    working_tree | machine_run "$1" 'cd /opt/vsched && tar -x'
}

# machine_end SCRATCH: ends QEMU, if it runs.
machine_end() {
    local pid
    pid=$(cat "$1/pid" 2>/dev/null) || return 0
    ssh -q -o "ControlPath=$1/ssh" -O exit root@127.0.0.1 2>/dev/null || true
    kill "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}
