# SPDX-License-Identifier: Apache-2.0
"""Answers that a guest may give to harm whoever asks."""

_VCPU = '{"logical-id": %s, "online": %s, "can-offline": true}'

#: What is answered to ``guest-get-vcpus`` and to everything else.
TEXTS = (
    '{"return": 1e999}',
    '{"return": [' + _VCPU % ('1e999', 'true') + ']}',
    '{"return": [' + _VCPU % ('NaN', 'true') + ']}',
    '{"return": [' + _VCPU % ('-1', 'true') + ']}',
    '{"return": [' + _VCPU % ('true', 'true') + ']}',
    '{"return": [' + _VCPU % ('9' * 5000, 'true') + ']}',
    '{"return": [' + _VCPU % ('18446744073709551616', 'true') + ']}',
    '{"return": [' + _VCPU % ('0', '"yes"') + ']}',
    '{"return": ['
    + ', '.join((_VCPU % ('0', 'true'), _VCPU % ('0', 'false')))
    + ']}',
    '{"return": ['
    + ', '.join(_VCPU % (index, 'true') for index in range(5000))
    + ']}',
    '{"return": ' + '[' * 50_000 + ']' * 50_000 + '}',
    '{"return": ' + '[' * 500 + ']' * 500 + '}',
    '{"return": ' + '{"a":' * 900 + '1' + '}' * 900 + '}',
    '{"return": "' + 'x' * 2_000_000 + '"}',
    '{"return": [], "return": [' + _VCPU % ('0', 'true') + ']}',
    '{"return": {"buf-b64": "!!!"}}',
    '{"return": {"buf-b64": 7}}',
    '{"return": {"pid": "x", "exited": 7, "exitcode": [], "out-data": 1}}',
    '{"return": {"exited": true, "exitcode": 0, "out-data": "\\u00ff"}}',
    '{"return": null}',
    '{"return": {}}',
    '{"return": []}',
    '{"return": ""}',
    '{"error": {"class": "' + 'x' * 100_000 + '"}}',
    '[]',
    'null',
    '7',
    '',
    '\x00',
    '{',
    '\ud800',
    '{"return": "\\ud800"}',
)
