#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# A compute node as operators have it, in QEMU's emulation: Debian 12 with
# systemd, cgroup v2, libvirt, vhost and nested KVM. Runs a command in it, with
# this working tree. See doc/source/contributor/lab.rst.

set -euo pipefail

# shellcheck source=tools/services.sh
. "$(dirname "${BASH_SOURCE[0]}")/services.sh"
# shellcheck source=tools/lab/image.sh
. "$VSCHED_TOOLS/lab/image.sh"
# shellcheck source=tools/lab/emulator.sh
. "$VSCHED_TOOLS/lab/emulator.sh"
# shellcheck source=tools/lab/machine.sh
. "$VSCHED_TOOLS/lab/machine.sh"

# The output is the command's alone.
say() {
    echo "$*" >&2
}

VSCHED_LAB_DIR=${VSCHED_LAB_DIR:-/var/cache/vsched/lab}
# What the image is built with, and what the node runs in.
LAB_PACKAGES=(
    debootstrap e2fsprogs qemu-utils qemu-system-x86 openssh-client
    util-linux git
)

LAB_SCHEDULERS=(rtds credit2 credit)

usage() {
    cat <<USAGE
usage: tools/lab.sh [--kernel RELEASE] [--scheduler NAME] [--steady] [--cold]
           [--results DIR] NODE [-- COMMAND...]
       tools/lab.sh --why-not NODE

Boots the node, or restores it as it was after its first boot, puts the
working tree into /opt/vsched, runs COMMAND there as root and ends the node.
The exit code and the standard output are those of COMMAND. Without COMMAND the
image is built and the node is booted once. Whatever COMMAND leaves in \$VSCHED_LAB_RESULTS is copied
to DIR, and the node's console.

NODE: $(nodes)
  --kernel RELEASE  the beginning of a release of one of the node's kernels;
                    its first one by default
  --scheduler NAME  of a hypervisor: ${LAB_SCHEDULERS[*]}
  --steady          of a hypervisor: time goes by emulated instructions;
                    slower
  --cold            boot, even where a booted node could be restored
  --results DIR     where results go
  --why-not         only print why this machine cannot build the image; fail
                    where it is built already, or nothing is against it

Images are kept in \$VSCHED_LAB_DIR ($VSCHED_LAB_DIR), one for each content
of tools/lab and of the project's requirements; older ones are removed.
Building one needs root.

Environment: VSCHED_LAB_CPUS ($LAB_CPUS) and VSCHED_LAB_MEMORY_MIB
($LAB_MEMORY_MIB) of the node; VSCHED_LAB_EMULATOR, a QEMU to run it in instead of that
of bookworm-backports, which is kept beside the images.
USAGE
}

# nodes: prints the kinds of nodes.
nodes() {
    local folder
    for folder in "$VSCHED_TOOLS"/lab/[a-z]*/; do
        basename "$folder"
    done | paste -s -d ' '
}

# hypervisor_options NODE SCHEDULER STEADY: checks and sets what only a node
# with a hypervisor has.
hypervisor_options() {
    if [[ ! -e $VSCHED_TOOLS/lab/$1/hypervisor ]]; then
        if [[ -n $2$3 ]]; then
            complain "lab: node $1 has no hypervisor, which --scheduler and" \
                '--steady are for'
            return 2
        fi
        return 0
    fi
    LAB_SCHEDULER=${2:-${LAB_SCHEDULERS[0]}}
    if [[ " ${LAB_SCHEDULERS[*]} " != *" $LAB_SCHEDULER "* ]]; then
        complain "lab: no scheduler $LAB_SCHEDULER: ${LAB_SCHEDULERS[*]}"
        return 2
    fi
    LAB_STEADY=${3:+-steady}
    # QEMU divides the names of files that the hypervisor gets there.
    if [[ $VSCHED_LAB_DIR == *[\ ,]* ]]; then
        complain "lab: no space and no comma may be in $VSCHED_LAB_DIR"
        return 2
    fi
}

# why_not IMAGE: prints why this machine cannot build an image; fails where it
# has it, or nothing is against it.
why_not() {
    local from
    [[ ! -e $1/complete ]] || return 1
    if [[ $(id -u) != 0 ]]; then
        echo 'building its image needs root'
        return 0
    fi
    from=$(archive)
    ! reachable "$from/dists/bookworm/Release" || return 1
    echo "its image is built from $from, which cannot be reached"
}

# reachable URL: whether it can be read, by the proxies of the environment.
reachable() {
    python3 - "$1" <<'READ' 2>/dev/null
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=30) as answer:
    answer.read(1)
READ
}

# results SCRATCH DIR: copies the results out, and the node's console, which
# alone has what a node that died printed last.
results() {
    mkdir -p "$2"
    cp "$1/console" "$2/console"
    machine_run "$1" 'tar -c -C /var/tmp/vsched-results .' | tar -x -C "$2"
}

lab_main() {
    local kernel='' scheduler='' steady='' cold='' results='' node=''
    local asked='' status=0
    while [[ $# -gt 0 ]]; do
        case $1 in
            --kernel | --scheduler | --results)
                if [[ $# -lt 2 ]]; then
                    complain "$1 needs a value"
                    return 2
                fi
                declare "${1#--}=$2"
                shift 2
                ;;
            --cold | --steady)
                declare "${1#--}=yes"
                shift
                ;;
            --why-not)
                asked=yes
                shift
                ;;
            -h | --help)
                usage
                return 0
                ;;
            --)
                shift
                break
                ;;
            *)
                if [[ -n $node || " $(nodes) " != *" $1 "* ]]; then
                    usage >&2
                    return 2
                fi
                node=$1
                shift
                ;;
        esac
    done
    if [[ -z $node ]]; then
        usage >&2
        return 2
    fi
    hypervisor_options "$node" "$scheduler" "$steady" || return
    local image release
    if [[ -n $asked ]]; then
        image=$(image_path "$node")
        why_not "$image"
        return
    fi
    ensure_packages "${LAB_PACKAGES[@]}"
    image=$(image_path "$node")
    emulator_ensure
    image_ensure "$node" "$image"
    # 6.1 is not the beginning of 6.12.
    [[ ! $kernel =~ ^[0-9]+\.[0-9]+$ ]] || kernel+=.
    release=$(image_release "$image" "$kernel")

    SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/vsched-lab.XXXXXX")
    trap 'machine_end "$SCRATCH"; rm -rf "$SCRATCH"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    if [[ -n $cold || ! -e $(machine_kept "$image" "$release") ]]; then
        machine_boot "$SCRATCH" "$image" "$release"
        [[ -n $cold ]] || machine_keep "$SCRATCH" "$image" "$release"
    else
        machine_restore "$SCRATCH" "$image" "$release"
    fi
    [[ $# -gt 0 ]] || return 0
    machine_put_tree "$SCRATCH"
    say "lab: $node with $release runs: $*"
    machine_run "$SCRATCH" "$(command_line "$@")" || status=$?
    [[ -z $results ]] || results "$SCRATCH" "$results"
    return "$status"
}

# command_line WORD...: what a shell of the node is to run.
command_line() {
    printf 'cd /opt/vsched && mkdir -p /var/tmp/vsched-results &&'
    printf ' export VSCHED_LAB_RESULTS=/var/tmp/vsched-results'
    printf ' PATH=/opt/vsched/.venv/bin:/usr/sbin:/usr/bin:/sbin:/bin && '
    printf '%q ' "$@"
}

lab_main "$@"
