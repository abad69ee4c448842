# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/lab.sh: a node that runs. Its scratch folder has its disk,
# its console and the sockets that it is controlled by.

LAB_CPUS=${VSCHED_LAB_CPUS:-2}
LAB_MEMORY_MIB=${VSCHED_LAB_MEMORY_MIB:-3072}
# Of a node with Xen: its scheduler, the memory of its first domain, and
# whether its time goes by the instructions that were emulated.
LAB_SCHEDULER=''
LAB_DOM0_MIB=1536
LAB_STEADY=''
# On the console when systemd has started all.
LAB_READY=LAB-READY
LAB_BOOT_S=300

# machine_kept IMAGE RELEASE: prints the file of a node that was saved when it
# had booted like this: only the same machine can be restored from it.
machine_kept() {
    local print
    print=$({
        cat "$VSCHED_TOOLS/lab/machine.sh"
        "${EMULATOR[@]}" --version
        echo "$LAB_CPUS $LAB_MEMORY_MIB"
    } | sha256sum | cut -c 1-8)
    echo "$1/ready-$2${LAB_SCHEDULER:+-$LAB_SCHEDULER}$LAB_STEADY-$print.qcow2"
}

# machine_boots IMAGE RELEASE: sets MACHINE to the options of QEMU by which
# the node differs from those of the other kind.
machine_boots() {
    local clock=tcg,thread=multi,tb-size=512
    local root='root=/dev/vda rw quiet mitigations=off systemd.show_status=0'
    MACHINE=()
    if [[ -n $LAB_STEADY ]]; then
        clock=tcg,thread=single,tb-size=512
        MACHINE+=(-icount 'shift=2,sleep=on')
    fi
    MACHINE+=(-accel "$clock")
    # Without smap: the emulation of nested guests fails with it.
    if [[ ! -e $1/hypervisor ]]; then
        MACHINE+=(-cpu max,-smap,-la57 -kernel "$1/vmlinuz-$2"
            -initrd "$1/initrd.img-$2"
            -append "$root console=ttyS0 tsc=reliable")
        return 0
    fi
    # Without smap: the first domain reboots without an end. Without rdtscp:
    # PVH guests crash.
    MACHINE+=(-cpu max,-smap,-rdtscp -kernel "$1/hypervisor"
        -append "console=com1 com1=115200,8n1 spec-ctrl=no xpti=no \
no-real-mode vga=none dom0_mem=${LAB_DOM0_MIB}M,max:${LAB_DOM0_MIB}M \
dom0_max_vcpus=1 sched=$LAB_SCHEDULER"
        -initrd "$1/vmlinuz-$2 $root console=hvc0,$1/initrd.img-$2")
}

# machine_start SCRATCH IMAGE RELEASE OPTION...: starts QEMU.
machine_start() {
    local scratch=$1 image=$2 release=$3 MACHINE
    shift 3
    ln -s "$image/id_ed25519" "$scratch/key"
    machine_boots "$image" "$release"
    "${EMULATOR[@]}" -name vsched-lab -machine q35 "${MACHINE[@]}" \
        -smp "$LAB_CPUS" -m "$LAB_MEMORY_MIB" -nodefaults -display none \
        -no-reboot -serial "file:$scratch/console" \
        -qmp "unix:$scratch/qmp,server=on,wait=off" \
        -drive "file=$scratch/disk.qcow2,if=none,id=disk,cache=unsafe" \
        -device virtio-blk-pci,drive=disk \
        -netdev "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-:22" \
        -device virtio-net-pci,netdev=net,romfile= \
        -device virtio-rng-pci "$@" >"$scratch/qemu.log" 2>&1 </dev/null &
    echo $! >"$scratch/pid"
    # The socket is there before anybody listens.
    wait_for 30 machine_monitor "$scratch" 'info status' ||
        machine_lost "$scratch"
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
    local kept other
    kept=$(machine_kept "$2" "$3")
    cp "$1/disk.qcow2" "$kept.new"
    mv "$kept.new" "$kept"
    # Those of other machines: eight digits differ.
    for other in "${kept%-*}"-????????.qcow2; do
        [[ $other == "$kept" ]] || rm -f "$other"
    done
    machine_monitor "$1" cont
}

# machine_restore SCRATCH IMAGE RELEASE: continues a kept node.
machine_restore() {
    local began=$SECONDS
    cp "$(machine_kept "$2" "$3")" "$1/disk.qcow2"
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
