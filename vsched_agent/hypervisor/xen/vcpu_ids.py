# SPDX-License-Identifier: Apache-2.0

"""Numbers for vCPUs of Xen, where other hypervisors have threads.

Xen schedules vCPUs by itself: no thread of the first domain runs them. The
agent identifies what it enforces on by a number, so each vCPU gets one that
no thread and no process of Linux can have (PID_MAX_LIMIT is 2**22).
"""

#: The largest number of a domain that Xen assigns (DOMID_FIRST_RESERVED).
MAX_DOMID = 0x7FEF
#: vCPUs of one domain; Xen has at most 8192 (MAX_VIRT_CPUS).
MAX_VCPUS = 1 << 13

_BASE = 1 << 30


def encode(domid: int, index: int = 0) -> int:
    """Return the number of a vCPU; with index 0, also that of its domain.

    :param domid: Xen's number of the domain, 1 to :data:`MAX_DOMID`. Xen does
        not assign it again before it has assigned all others.
    :raises ValueError: when one is out of range.
    """
    if not (0 < domid <= MAX_DOMID and 0 <= index < MAX_VCPUS):
        raise ValueError('domain %d has no vCPU %d' % (domid, index))
    return _BASE | domid * MAX_VCPUS | index


def decode(number: int) -> tuple[int, int]:
    """Return the domain and the index of a vCPU.

    :raises ValueError: when the number is none of a vCPU.
    """
    domid, index = divmod(number ^ _BASE, MAX_VCPUS)
    if not 0 < domid <= MAX_DOMID:
        raise ValueError('%d is no vCPU of Xen' % number)
    return domid, index
