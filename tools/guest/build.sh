#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the tiny guest that the quickstart, the functional tests and the
# benchmarks boot: Debian's cloud kernel, uncompressed (an ELF vmlinux is
# entered through PVH and skips the slow decompression under TCG), and an
# initramfs of busybox, the QEMU guest agent, the virtio modules and a
# generator of packets and blocks (load.c) and work for many threads
# (work.c), which are compiled here. A second initramfs holds an HTTP server
# and an SQL database besides (servers/), so that no other guest takes longer
# to boot for them.
#
# The Debian packages are downloaded and unpacked in a temporary folder;
# nothing of them is installed.

set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
OUTPUT=${VSCHED_GUEST_DIR:-/var/cache/vsched/guest}
FORCE=0

# shellcheck source=tools/services/packages.sh
. "$HERE/../services/packages.sh"

# In the order in which they must be loaded: virtio_ring before virtio,
# and the bus (pci) before the devices on it.
MODULES=(
    drivers/virtio/virtio_ring
    drivers/virtio/virtio
    drivers/virtio/virtio_pci_legacy_dev
    drivers/virtio/virtio_pci_modern_dev
    drivers/virtio/virtio_pci
    drivers/char/virtio_console
    net/core/failover
    drivers/net/net_failover
    drivers/net/virtio_net
    drivers/block/virtio_blk
)
# Instead of these, in a guest of Xen.
XEN_MODULES=(
    drivers/net/xen-netfront
    drivers/block/xen-blkfront
)

usage() {
    cat <<USAGE
usage: tools/guest/build.sh [--output DIR] [--force]

Writes vmlinux, initramfs.cpio, servers.cpio and manifest into DIR (default
\$VSCHED_GUEST_DIR or /var/cache/vsched/guest). Does nothing when DIR was
built by these same scripts already; --force builds all the same.
USAGE
}

die() {
    echo "guest: $*" >&2
    exit 1
}

# little_endian FILE OFFSET BYTES: the unsigned number stored there.
little_endian() {
    od -An -v -t "u$3" -j "$2" -N "$3" --endian=little "$1" | tr -d ' '
}

# extract_vmlinux VMLINUZ OUTPUT: follows the x86 boot protocol's setup
# header (Documentation/arch/x86/boot.rst) to the compressed payload.
extract_vmlinux() {
    local sectors start length magic tool
    [[ $(little_endian "$1" 0x202 2) -ge $((0x208)) ]] ||
        die "$1 speaks a boot protocol older than 2.08"
    sectors=$(little_endian "$1" 0x1f1 1)
    start=$(((sectors + 1) * 512 + $(little_endian "$1" 0x248 4)))
    length=$(little_endian "$1" 0x24c 4)
    magic=$(od -An -t x1 -j "$start" -N 4 "$1" | tr -d ' ')
    case $magic in
        02214c18) tool=(lz4 -dc) ;;
        1f8b*) tool=(gzip -dc) ;;
        fd377a58) tool=(xz -dc --single-stream) ;;
        28b52ffd) tool=(zstd -dc) ;;
        *) die "$1: unknown compression, magic $magic" ;;
    esac
    # The last four bytes hold the size of the result; each tool would
    # take them for the start of another stream.
    dd if="$1" bs=1M iflag=skip_bytes,count_bytes status=none \
        skip="$start" count="$((length - 4))" |
        "${tool[@]}" >"$2" || die "cannot unpack the kernel with ${tool[0]}"
    [[ $(od -An -t x1 -N 4 "$2" | tr -d ' ') == 7f454c46 ]] ||
        die "the unpacked kernel is not an ELF file"
}

# add_libraries ROOT BINARY: copies what the loader would map, from the
# unpacked packages (never from the host, whose versions may differ).
add_libraries() {
    local root=$1 wanted=("$2") binary name found
    while [[ ${#wanted[@]} -gt 0 ]]; do
        binary=${wanted[0]}
        wanted=("${wanted[@]:1}")
        for name in $(needed "$binary"); do
            [[ -e $root/lib/$name ]] && continue
            found=$(find "$WORK/root" -name "$name" -print -quit)
            [[ -n $found ]] || die "no package here holds $name"
            cp -L "$found" "$root/lib/$name"
            wanted+=("$root/lib/$name")
        done
    done
}

needed() {
    readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

# closure PACKAGE...: these packages and what they need to run, all of it.
closure() {
    apt-cache depends --recurse --no-recommends --no-suggests \
        --no-conflicts --no-breaks --no-replaces --no-enhances \
        --no-pre-depends "$@" | grep '^[a-z0-9]' | cut -d: -f1 | sort -u
}

download() {
    local image libraries
    echo 'guest: downloading packages (not installing them)'
    # Debian's archive keeps only the newest build, so a stale list of
    # packages names files which are gone.
    update_lists || die 'the lists of packages could not be read'
    image=$(apt-cache depends linux-image-cloud-amd64 |
        sed -n 's/^ *Depends: \(linux-image-.*\)/\1/p' | head -n 1)
    [[ -n $image ]] || die 'apt knows no linux-image-cloud-amd64'
    mapfile -t libraries < <(closure qemu-guest-agent lighttpd |
        grep -E '^(libc6|libglib2|libnuma1|libudev1|liburing2|libpcre2-8)'\
'|^(libnettle8|libxxhash0)')
    mkdir -p "$WORK/debs" "$WORK/root"
    # As root, apt drops to the user _apt, who can't write here: it says so
    # and goes on as root; the option spares the warning.
    (cd "$WORK/debs" && apt-get -qq -o APT::Sandbox::User=root download \
        "$image" busybox-static qemu-guest-agent lighttpd libsqlite3-dev \
        "${libraries[@]}")
    local deb
    for deb in "$WORK"/debs/*.deb; do
        dpkg-deb -x "$deb" "$WORK/root"
        # shellcheck disable=SC2016  # the format's own braces
        dpkg-deb -W --showformat='${Package} ${Version}\n' "$deb" \
            >>"$WORK/packages"
    done
}

initramfs() {
    local root=$WORK/initramfs modules module
    mkdir -p "$root"/{bin,dev,etc,lib,proc,run,sys,tmp,usr,modules}
    mkdir -p "$root/var/run"
    ln -s lib "$root/lib64"
    ln -s ../bin "$root/usr/sbin"
    ln -s bin "$root/sbin"
    cp "$WORK/root/bin/busybox" "$root/bin/busybox"
    cp "$WORK/root/usr/sbin/qemu-ga" "$root/bin/qemu-ga"
    cp -L "$WORK/root/lib64/ld-linux-x86-64.so.2" "$root/lib/"
    add_libraries "$root" "$root/bin/qemu-ga"
    modules=$(echo "$WORK"/root/lib/modules/*)
    for module in "${MODULES[@]}" "${XEN_MODULES[@]}"; do
        cp "$modules/kernel/$module.ko" "$root/modules/"
    done
    printf '/modules/%s.ko\n' "${MODULES[@]##*/}" >"$root/modules/order"
    printf '/modules/%s.ko\n' "${XEN_MODULES[@]##*/}" \
        >"$root/modules/order.xen"
    local applet
    while read -r applet; do
        [[ -e $root/bin/$applet ]] || ln -s busybox "$root/bin/$applet"
    done < <("$root/bin/busybox" --list)
    # Static: the guest's libraries are the agent's only.
    gcc -static -s -O2 -Wall -Wextra -Werror -o "$root/bin/vsched-load" \
        "$HERE/load.c" || die 'cannot compile load.c'
    gcc -static -s -O2 -Wall -Wextra -Werror -pthread \
        -o "$root/bin/vsched-work" "$HERE/work.c" ||
        die 'cannot compile work.c'
    install -m 0755 "$HERE/init" "$root/init"
    install -m 0755 "$HERE/uevent" "$root/bin/vsched-uevent"
    archive "$root" >"$WORK/initramfs.cpio"
}

# archive ROOT: a cpio archive. Owner and times don't matter in a guest, but
# the same input should give the same bytes.
archive() {
    find "$1" -exec touch -h -d @0 {} +
    (cd "$1" && find . -print0 | LC_ALL=C sort -z |
        cpio --quiet --null -o -H newc --reproducible -R 0:0)
}

# servers: the initramfs and, behind it, an archive of what serves; the
# kernel unpacks one after the other.
servers() {
    local root=$WORK/servers file
    mkdir -p "$root"/{bin,etc,lib,www,var/tmp}
    cp "$WORK/root/usr/sbin/lighttpd" "$root/bin/lighttpd"
    add_libraries "$root" "$root/bin/lighttpd"
    for file in "$root"/lib/*; do
        [[ ! -f $WORK/initramfs/lib/${file##*/} ]] || rm "$file"
    done
    gcc -static -s -O2 -Wall -Wextra -Werror -I "$WORK/root/usr/include" \
        -o "$root/bin/vsched-database" "$HERE/servers/database.c" \
        "$WORK"/root/usr/lib/*/libsqlite3.a -lm ||
        die 'cannot compile database.c'
    gcc -static -s -O2 -Wall -Wextra -Werror -o "$root/bin/vsched-shop" \
        "$HERE/servers/shop.c" || die 'cannot compile shop.c'
    install -m 0755 "$HERE/servers/serve" "$root/bin/vsched-serve"
    install -m 0644 "$HERE/servers/lighttpd.conf" "$root/etc/lighttpd.conf"
    # What benchmarks download.
    dd if=/dev/zero of="$root/www/100k" bs=100000 count=1 status=none
    cat "$WORK/initramfs.cpio" <(archive "$root") >"$WORK/servers.cpio"
}

fingerprint() {
    cat "$HERE/build.sh" "$HERE/init" "$HERE/uevent" "$HERE"/*.c \
        "$HERE"/servers/* | sha256sum | cut -d ' ' -f 1
}

up_to_date() {
    [[ -s $OUTPUT/vmlinux && -s $OUTPUT/initramfs.cpio &&
        -s $OUTPUT/servers.cpio ]] &&
        grep -qx "scripts $1" "$OUTPUT/manifest" 2>/dev/null
}

# publish FILE: into the output folder at one stroke, for a guest may be
# booting from what is there.
publish() {
    install -m 0644 "$WORK/$1" "$OUTPUT/.$1"
    mv -f "$OUTPUT/.$1" "$OUTPUT/$1"
}

main() {
    while [[ $# -gt 0 ]]; do
        case $1 in
            --output)
                [[ $# -ge 2 ]] || die '--output wants a folder'
                OUTPUT=$2
                shift 2
                ;;
            --output=*)
                OUTPUT=${1#--output=}
                shift
                ;;
            --force)
                FORCE=1
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
    [[ $(uname -m) == x86_64 ]] || die 'only x86_64 is built here'
    mkdir -p "$OUTPUT"
    # Two clones may start at the same moment and share the output folder.
    exec 9>"$OUTPUT/.lock"
    flock 9
    local print
    print=$(fingerprint)
    if [[ $FORCE == 0 ]] && up_to_date "$print"; then
        echo "guest: up to date in $OUTPUT"
        return
    fi
    local tool
    for tool in apt-get dpkg-deb cpio readelf gcc lz4 flock; do
        command -v "$tool" >/dev/null || die "needs $tool"
    done
    WORK=$(mktemp -d)
    trap 'rm -rf "$WORK"' EXIT
    download
    echo 'guest: building'
    extract_vmlinux "$(find "$WORK/root/boot" -name 'vmlinuz-*')" \
        "$WORK/vmlinux"
    initramfs
    servers
    {
        echo "scripts $print"
        sort "$WORK/packages"
    } >"$WORK/manifest"
    # The manifest goes last: an interrupted copy is not up to date.
    rm -f "$OUTPUT/manifest"
    publish vmlinux
    publish initramfs.cpio
    publish servers.cpio
    publish manifest
    echo "guest: built in $OUTPUT"
}

main "$@"
