# SPDX-License-Identifier: Apache-2.0

"""What flavors may say that makes no sense."""

#: Sets that say nothing enforceable; each must give one event and leave the
#: instance untouched.
SETS = (
    {'cpu_runtime_us': '-1'},
    {'cpu_runtime_us': '0'},
    {'cpu_runtime_us': '1'},
    {'cpu_runtime_us': ''},
    {'cpu_runtime_us': ' 12000'},
    {'cpu_runtime_us': '12_000'},
    {'cpu_runtime_us': '12000.5'},
    {'cpu_runtime_us': '0x10'},
    {'cpu_runtime_us': '1e4'},
    {'cpu_runtime_us': '9' * 30},
    {'cpu_runtime_us': '18446744073709551617'},
    {'cpu_runtime_us': '\u0661\u0662\u0660\u0660\u0660'},
    {'cpu_runtime_us': '12000\u200b'},
    {'cpu_runtime_us': 'x' * 10_000},
    {'cpu_runtime_us': '20001'},
    {'cpu_runtime_us': '12000', 'cpu_period_us': '11999'},
    {'cpu_runtime_us': '50', 'cpu_period_us': '99'},
    {'cpu_period_us': '20000'},
    {'cpu_mode': 'capped'},
    {'cpu_runtime_us': '12000', 'cpu_mode': 'Capped'},
    {'cpu_runtime_us': '12000', 'backend': 'fifo'},
    {'cpu_runtime_us': '900', 'cpu_period_us': '2000', 'backend': 'cfs'},
    {
        'cpu_runtime_us': '12000',
        'backend': 'cfs',
        'cpu_mode': 'work_conserving',
    },
    {'cpu_runtime_us': '12000', 'cpu_runtime': '12000'},
    {'cpu_runtime_us': '12000', '\u00b5': '1'},
    {'cpu_runtime_us': '12000', 'balloon': 'off', 'min_vcpus': '1'},
    {'cpu_runtime_us': '12000', 'min_vcpus': '1'},
    {'cpu_runtime_us': '12000', 'max_alloc_error_pct': 'nan'},
    {'cpu_runtime_us': '12000', 'comm_aware': 'yes'},
    {'cpu_runtime_us': '12000', 'weight': '0'},
)
