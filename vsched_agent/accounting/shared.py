# SPDX-License-Identifier: Apache-2.0

"""Estimates the CPU time that interrupts spend on instances.

Where the kernel counts interrupts separately (CONFIG_IRQ_TIME_ACCOUNTING),
their time is in no thread's and bounds what instances can have caused.
Elsewhere it is in the time of the interrupted thread. There a packet that an
instance sends is processed by softirqs in the context of the sending thread,
vhost's or QEMU's, which is charged already: only received packets count.

The estimate is bounded by what the host ran beside its threads for
instances, so nothing is counted twice.
"""

from collections.abc import Sequence

from vsched_lib.contract import messages

#: The softirq of one packet between a bridge and a tap, in nanoseconds:
#: 5 to 7 us, measured by tracepoints.
PACKET_NS = 6000


def estimate_us(sample: messages.UsageSample, irq_time: bool) -> int:
    """Return what one instance's packets cost outside of its threads.

    Disk requests count as 0, as their cost is not known.

    :param irq_time: whether the kernel counts interrupts separately.
    """
    packets = sample.net_rx_packets
    if irq_time:
        packets += sample.net_tx_packets
    return packets * PACKET_NS // 1000


def shares_us(
    samples: Sequence[messages.UsageSample], most_us: int, irq_time: bool
) -> list[int]:
    """Return each instance's share of the host's work.

    :param most_us: upper bound of the sum.
    """
    estimates = [estimate_us(one, irq_time) for one in samples]
    total = sum(estimates)
    if total <= most_us:
        return estimates
    return [one * most_us // total for one in estimates]
