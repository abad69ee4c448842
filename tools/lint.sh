#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Everything the pep8 environment checks, without tox:
#
#   tools/lint.sh [--venv DIR] [CHECK ...]
#
# CHECK is one of ruff hacking mypy imports spelling rst bash generated; all
# of them without arguments. All run even when one fails; the exit status
# says whether any did.

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2

checks=()
while [ $# -gt 0 ]; do
    case $1 in
        --venv)
            PATH=$2/bin:$PATH
            export PATH
            shift 2
            ;;
        -h|--help)
            sed -n '/^# Everything/,/^$/s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *)
            checks+=("$1")
            shift
            ;;
    esac
done
if [ ${#checks[@]} -eq 0 ]; then
    checks=(ruff hacking mypy imports spelling rst bash generated)
fi

# Tracked files and new ones that are not ignored, existing ones only.
files() {
    git ls-files --cached --others --exclude-standard -- "$@" |
        while read -r name; do
            if [ -f "$name" ]; then
                echo "$name"
            fi
        done
}

shell_files() {
    files | while read -r name; do
        case $name in
            *.sh) echo "$name" ;;
            tools/*|.ci/*|devstack/*)
                if head -n 1 "$name" | grep -q -E '^#!.*\b(ba)?sh\b'; then
                    echo "$name"
                fi
                ;;
        esac
    done
}

run() {
    case $1 in
        ruff) ruff check . && ruff format --check . ;;
        hacking) files '*.py' | xargs -r flake8 ;;
        mypy) mypy ;;
        imports) lint-imports ;;
        spelling) files | grep -v '^benchmarks/results/' | xargs -r codespell ;;
        rst) files '*.rst' | xargs -r doc8 ;;
        bash) shell_files | xargs -r bashate --ignore E006,E011 ;;
        generated) tools/check-generated.sh ;;
        *)
            echo "lint.sh: no such check: $1" >&2
            return 2
            ;;
    esac
}

failed=()
for check in "${checks[@]}"; do
    echo "== $check"
    run "$check" || failed+=("$check")
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "lint.sh: failed: ${failed[*]}" >&2
    exit 1
fi
echo "lint.sh: all passed"
