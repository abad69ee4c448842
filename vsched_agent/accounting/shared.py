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

"""Work of the host that no thread does for an instance: its price in CPU.

Interrupts are nobody's work. Where the kernel keeps their time apart
(CONFIG_IRQ_TIME_ACCOUNTING), that time is in no thread's, and no instance
can have caused more of it than there was. Elsewhere it is in the time of
whoever was interrupted. A packet that an instance sends is taken on by
softirqs in the context of the thread that sends it, vhost's or QEMU's, so
there it is paid already, and only packets received are counted here.

Either way this is an estimate, bounded by what the host did beside its
threads for instances: with it, nothing is counted twice.
"""

from collections.abc import Sequence

from vsched_lib.contract import messages

#: The softirq of one packet between a bridge and a tap, in nanoseconds:
#: 5 to 7 us, measured by tracepoints.
PACKET_NS = 6000


def estimate_us(sample: messages.UsageSample, irq_time: bool) -> int:
    """What one instance's packets cost outside of its threads.

    Nothing is known of requests of disks; they count as 0.

    :param irq_time: whether the kernel keeps interrupts apart.
    """
    packets = sample.net_rx_packets
    if irq_time:
        packets += sample.net_tx_packets
    return packets * PACKET_NS // 1000


def shares_us(samples: Sequence[messages.UsageSample], most_us: int,
              irq_time: bool) -> list[int]:
    """What each instance is given of the host's work.

    :param most_us: what there is to give: the sum is never more.
    """
    wanted = [estimate_us(one, irq_time) for one in samples]
    total = sum(wanted)
    if total <= most_us:
        return wanted
    return [one * most_us // total for one in wanted]
