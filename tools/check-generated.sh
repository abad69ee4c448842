#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes every generated file again, in a folder of its own, and fails when
# one that is committed differs:
#
#   tools/check-generated.sh          say what differs
#   tools/check-generated.sh --write  put the new ones in place
#
# These are the configuration and policy samples in etc/vsched, what the
# operators' page shows of the benchmarks' records, and its types of the API,
# which are compared where "npm ci" has installed their generator in vsched_ui.
# After a change of either the page is to be built again. The evidence pages
# are not committed; that they can be made is checked.

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

if python -m benchmarks.published "$fresh/published"; then
    compare "$fresh/published" vsched_ui/src/published.json
else
    status=1
fi

types=vsched_ui/src/api/schema.d.ts
generator=vsched_ui/node_modules/.bin/openapi-typescript
print_openapi='
import json, sys
from vsched_api.rest import openapi_document
json.dump(openapi_document.document(), sys.stdout)
'
if [ ! -x $generator ]; then
    echo "$types: not compared; run npm ci in vsched_ui"
elif python -c "$print_openapi" >"$fresh/openapi.json" &&
    $generator "$fresh/openapi.json" --output "$fresh/schema.d.ts" \
        >/dev/null; then
    compare "$fresh/schema.d.ts" $types
else
    status=1
fi

python -m benchmarks.evidence --no-pictures "$fresh/evidence" || status=1
exit $status
