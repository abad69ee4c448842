# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/lab.sh: images of nodes. tools/lab/NODE has
#
#   kernels   packages of kernels, the first is the default
#   packages  other packages, one a line
#   modules   modules of the initial RAM disk
#   root/     files that are laid over the root file system
#   hypervisor  where the node runs on one: a program that builds it, in the
#               root file system

# What is mounted in the root file system while packages are installed.
CHROOT='mount --make-rprivate /
mount -t proc proc "$ROOT/proc"
mount -t sysfs sysfs "$ROOT/sys"
mount -t tmpfs tmpfs "$ROOT/tmp"
mkdir "$ROOT/tmp/wheels"
mount --bind -o ro "$WHEELS" "$ROOT/tmp/wheels"
exec chroot "$ROOT" "$@"'
# Parts of Debian's kernels that no node of ours has devices for.
UNUSED_MODULES=(
    sound drivers/{gpu,media,infiniband,isdn,bluetooth,iio,staging,mtd,ata}
    drivers/{scsi,usb,hid,input,hwmon,video,md,leds,mmc,nfc,comedi,rtc}
    drivers/net/{wireless,ethernet,can,usb,wwan,phy,ieee802154}
    net/{bluetooth,wireless,mac80211,can,nfc,rxrpc,sctp,tipc,dccp,ax25}
    fs/{xfs,btrfs,ocfs2,gfs2,nfs,nfsd,ceph,smb,cifs,f2fs,jfs,ubifs,afs,nilfs2}
)

# image_path NODE: prints the folder of the image for this content.
image_path() {
    local file print
    print=$(
        cd "$VSCHED_ROOT"
        {
            git ls-files -co --exclude-standard tools/lab/image.sh \
                "tools/lab/$1" tools/services tools/guest
            ls setup.cfg setup.py pyproject.toml upper-constraints.txt
        } | LC_ALL=C sort | while read -r file; do
            [[ ! -e $file ]] || sha256sum "$file"
        done | sha256sum | cut -c 1-16
    )
    echo "$VSCHED_LAB_DIR/$1-$print"
}

# image_release IMAGE BEGINNING: prints the release of a kernel.
image_release() {
    local release
    while read -r release; do
        if [[ $release == "$2"* ]]; then
            echo "$release"
            return 0
        fi
    done <"$1/releases"
    complain "lab: no kernel $2: $(paste -s -d ' ' "$1/releases")"
    return 2
}

# image_ensure NODE IMAGE: builds the image unless it is there.
image_ensure() {
    local lock other status=0 began=$SECONDS
    mkdir -p "$VSCHED_LAB_DIR"
    exec {lock}>"$VSCHED_LAB_DIR/$1.lock"
    flock "$lock"
    if [[ ! -e $2/complete ]]; then
        if [[ $(id -u) != 0 ]]; then
            complain 'lab: building an image needs root'
            return 1
        fi
        say "lab: building $2"
        rm -rf "$2"
        mkdir -p "$2"
        # "errexit" has no effect left of "||".
        set +e
        (
            set -e
            image_build "$1" "$2"
        ) >"$2/build.log" 2>&1 </dev/null
        status=$?
        set -e
        if [[ $status != 0 ]]; then
            tail -n 30 "$2/build.log" >&2
            complain "lab: building failed: $2/build.log"
            return 1
        fi
        : >"$2/complete"
        for other in "$VSCHED_LAB_DIR/$1"-*/; do
            [[ ${other%/} == "$2" ]] || rm -rf "$other"
        done
        say "lab: built in $((SECONDS - began)) s"
    fi
    exec {lock}>&-
}

# archive: prints the archive that this host installs from; debootstrap's own
# one by default.
archive() {
    local found
    # It fails where one of the files that it reads is missing.
    found=$(mirror) || true
    found=${found:-http://deb.debian.org/debian}
    echo "${found%/}"
}

# mirror: prints what the files of apt have.
mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources \
        2>/dev/null | awk '
            /^deb / || /^URIs:/ {
                for (i = 1; i <= NF; i++)
                    if ($i ~ /^http/ && $i ~ /debian/) { print $i; exit }
            }'
}

# in_root ROOT COMMAND...: runs a command in a root file system, as root.
in_root() {
    env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        DEBIAN_FRONTEND=noninteractive PIP_NO_INDEX=1 \
        PIP_FIND_LINKS=/tmp/wheels ROOT="$1" WHEELS="$1.wheels" \
        unshare -m bash -e -c "$CHROOT" in_root "${@:2}"
}

# image_wheels DIR: gets all that the project needs from PyPI. They are made
# here, with the settings of this host.
image_wheels() {
    local python
    python=$(find_python)
    "$python" -m venv "$1/venv"
    # Building leaves files in the tree.
    install -d "$1/tree"
    working_tree | tar -x -C "$1/tree"
    PBR_VERSION=0.0.1 "$1/venv/bin/pip" wheel -q -w "$1" \
        -c "$VSCHED_ROOT/upper-constraints.txt" \
        "$1/tree[standalone,test]" pbr setuptools wheel
    rm -rf "$1/venv" "$1/tree"
}

# hypervisor_path DIR: prints the file of the hypervisor that this kind of
# node's program builds.
hypervisor_path() {
    local print
    print=$(sha256sum <"$1/hypervisor" | cut -c 1-16)
    echo "$VSCHED_LAB_DIR/hypervisor-${1##*/}-$print"
}

# hypervisor_ensure DIR ROOT: builds a node's hypervisor in a root file system,
# unless it is there: that takes longer than all else.
hypervisor_ensure() {
    local built other
    built=$(hypervisor_path "$1")
    [[ ! -e $built ]] || return 0
    install -m 0755 "$1/hypervisor" "$2/var/tmp/build-hypervisor"
    in_root "$2" /var/tmp/build-hypervisor /var/tmp/hypervisor
    mv "$2/var/tmp/hypervisor" "$built"
    rm "$2/var/tmp/build-hypervisor"
    for other in "${built%-*}"-*; do
        [[ $other == "$built" ]] || rm -f "$other"
    done
}

# image_build NODE IMAGE: in a subshell with errexit.
image_build() {
    local node=$VSCHED_TOOLS/lab/$1 image=$2 root=$2/root release folder
    local kernels packages
    mkdir -p "$root.wheels"
    image_wheels "$root.wheels"
    mapfile -t kernels <"$node/kernels"
    mapfile -t packages <"$node/packages"

    debootstrap --variant=minbase bookworm "$root" "$(archive)"
    cp /etc/resolv.conf "$root/etc/resolv.conf"
    # Kernels of the security archive are wanted as well.
    rm -f "$root/etc/apt/sources.list"
    cp -a /etc/apt/sources.list.d/debian.sources \
        "$root/etc/apt/sources.list.d/" 2>/dev/null ||
        cp /etc/apt/sources.list "$root/etc/apt/sources.list"
    printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
    chmod 0755 "$root/usr/sbin/policy-rc.d"
    # A small initial RAM disk: emulation takes long to unpack a large one.
    mkdir -p "$root/etc/initramfs-tools/conf.d"
    printf 'MODULES=list\nCOMPRESS=lz4\n' \
        >"$root/etc/initramfs-tools/conf.d/lab"
    cp "$node/modules" "$root/etc/initramfs-tools/modules"
    in_root "$root" apt-get -qq -o APT::Sandbox::User=root update
    in_root "$root" apt-get -qq -o APT::Sandbox::User=root install -y \
        --no-install-recommends initramfs-tools lz4 "${kernels[@]}" \
        "${packages[@]}" "${PYTHON_PACKAGES[@]}" "${GUEST_PACKAGES[@]}" \
        "${LIBVIRT_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
    rm "$root/usr/sbin/policy-rc.d"
    if [[ -e $node/hypervisor ]]; then
        hypervisor_ensure "$node" "$root"
        cp "$(hypervisor_path "$node")" "$image/hypervisor"
    fi

    for folder in "${UNUSED_MODULES[@]}"; do
        rm -rf "$root"/lib/modules/*/kernel/"$folder"
    done
    for release in $(find "$root/lib/modules" -mindepth 1 -maxdepth 1 \
        -printf '%f\n' | sort -V -r); do
        in_root "$root" depmod "$release"
        in_root "$root" update-initramfs -u -k "$release"
        cp "$root/boot/vmlinuz-$release" "$root/boot/initrd.img-$release" \
            "$image"
        echo "$release" >>"$image/releases"
    done

    ssh-keygen -q -t ed25519 -N '' -f "$image/id_ed25519"
    install -d -m 0700 "$root/root/.ssh"
    cp "$image/id_ed25519.pub" "$root/root/.ssh/authorized_keys"
    cp -rT --no-preserve=ownership "$node/root" "$root"
    in_root "$root" bash -e /usr/local/sbin/lab-setup

    install -d "$root/opt/vsched"
    working_tree | tar -x -C "$root/opt/vsched"
    in_root "$root" bash -c 'cd /opt/vsched && . tools/services.sh &&
        ensure_venv "$PWD/.venv" standalone,test'
    "$VSCHED_TOOLS/guest/build.sh"
    install -d "$root/var/cache/vsched"
    cp -a "${VSCHED_GUEST_DIR:-/var/cache/vsched/guest}" \
        "$root/var/cache/vsched/guest"

    rm -rf "$root"/usr/share/{doc,man,locale}/* "$root"/var/cache/apt/* \
        "$root"/var/lib/apt/lists/*
    mke2fs -q -t ext4 -O ^metadata_csum -d "$root" "$image/node.raw" 4G
    qemu-img convert -O qcow2 "$image/node.raw" "$image/node.qcow2"
    rm -rf "$image/node.raw" "$root" "$root.wheels"
}

# working_tree: writes the working tree, as it is now, as a tar archive.
working_tree() {
    (
        cd "$VSCHED_ROOT"
        git ls-files -z -co --exclude-standard | while IFS= read -r -d '' \
            file; do
            [[ ! -e $file ]] || printf '%s\0' "$file"
        done | tar -c --null --no-recursion -T -
    )
}
