#!/bin/bash
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
# Makes every generated file again, in a folder of its own, and fails when
# one that is committed differs:
#
#   tools/check-generated.sh          say what differs
#   tools/check-generated.sh --write  put the new ones in place
#
# These are the configuration and policy samples in etc/vsched and the
# evidence pages in doc/source/evidence.

set -u -o pipefail
cd "$(dirname "$0")/.." || exit 2

write=0
case ${1-} in
    '') ;;
    --write) write=1 ;;
    *)
        sed -n '/^# Makes/,/^$/s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
esac

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
status=0

# oslo.messaging pulls in eventlet, which warns at length when imported.
export PYTHONWARNINGS=ignore

compare() {
    if cmp -s "$1" "$2"; then
        return
    fi
    if [ $write = 1 ]; then
        cp "$1" "$2"
        echo "$2: written"
    else
        diff -u "$2" "$1" | head -n 40
        echo "$2: out of date; run tools/check-generated.sh --write" >&2
        status=1
    fi
}

for config in etc/vsched/*-config-generator.conf; do
    sample=$(sed -n 's/^output_file = //p' "$config")
    if oslo-config-generator --config-file "$config" \
        --output-file "$fresh/sample"; then
        compare "$fresh/sample" "$sample"
    else
        status=1
    fi
done

config=etc/vsched/policy-generator.conf
if oslopolicy-sample-generator --config-file "$config" \
    --output-file "$fresh/sample"; then
    compare "$fresh/sample" "$(sed -n 's/^output_file = //p' "$config")"
else
    status=1
fi

# Pictures depend on the release of matplotlib: they are only written.
if [ $write = 1 ]; then
    python -m benchmarks.evidence || status=1
fi
if python -m benchmarks.evidence --no-pictures "$fresh/evidence"; then
    for page in "$fresh"/evidence/*.rst; do
        compare "$page" "doc/source/evidence/${page##*/}"
    done
else
    status=1
fi
exit $status
