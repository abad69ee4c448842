# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by tools/lab.sh: the QEMU that nodes run in. That of Debian 12 (7.2)
# translates code while another emulated CPU changes it, and may keep what it
# has read too early. Linux changes its code as it runs (static keys): a node's
# kernel died with "Oops: int3" when a guest was started. Since QEMU 8.1 pages
# are locked before they are translated. So nodes run in the QEMU of Debian's
# backports, which is unpacked here and not installed; the libraries are those
# of the installed one.

EMULATOR_PACKAGES=(
    qemu-system-x86 qemu-system-common qemu-system-data seabios
)
# QEMU and the folders of its data.
EMULATOR=(qemu-system-x86_64)

# emulator_ensure: gets it, unless it is there, and sets EMULATOR.
emulator_ensure() {
    if [[ -n ${VSCHED_LAB_EMULATOR:-} ]]; then
        EMULATOR=("$VSCHED_LAB_EMULATOR")
        return 0
    fi
    local folder=$VSCHED_LAB_DIR/emulator lock
    mkdir -p "$VSCHED_LAB_DIR"
    exec {lock}>"$folder.lock"
    flock "$lock"
    if [[ ! -e $folder/complete ]]; then
        rm -rf "$folder"
        mkdir "$folder"
        if ! emulator_get "$folder" >"$folder/get.log" 2>&1 </dev/null; then
            tail -n 20 "$folder/get.log" >&2
            complain "lab: QEMU of bookworm-backports was not got:" \
                "$folder/get.log (VSCHED_LAB_EMULATOR names another QEMU)"
            return 1
        fi
        : >"$folder/complete"
        say "lab: got $("$folder/usr/bin/qemu-system-x86_64" --version |
            head -n 1)"
    fi
    exec {lock}>&-
    EMULATOR=("$folder/usr/bin/qemu-system-x86_64"
        -L "$folder/usr/share/qemu" -L "$folder/usr/share/seabios")
}

# emulator_get DIR: downloads the packages, whose signatures apt checks, and
# unpacks them. Nothing of this host's apt changes.
emulator_get() (
    cd "$1" && mkdir -p apt/{lists,cache/archives}/partial || exit
    printf 'deb [signed-by=%s] %s bookworm-backports main\n' \
        /usr/share/keyrings/debian-archive-keyring.gpg "$(archive)" \
        >apt/sources.list
    options=(
        -qq -o "Dir::Etc::sourcelist=$PWD/apt/sources.list"
        -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$PWD/apt/lists"
        -o "Dir::Cache=$PWD/apt/cache" -o APT::Sandbox::User=root
    )
    apt-get "${options[@]}" update &&
        apt-get "${options[@]}" download "${EMULATOR_PACKAGES[@]}" || exit
    for package in *.deb; do
        dpkg-deb -x "$package" . || exit
    done
    rm -rf ./*.deb apt usr/share/doc
)
