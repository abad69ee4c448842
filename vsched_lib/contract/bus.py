# SPDX-License-Identifier: Apache-2.0

"""Options of agents and collectors for authentication on the bus."""

from oslo_config import cfg

from vsched_lib.contract import errors
from vsched_lib.contract import signing

GROUP = cfg.OptGroup(
    'bus',
    title='Bus',
    help='Authentication of agents and collectors on the bus.',
)

AUTHENTICATION = cfg.StrOpt(
    'authentication',
    choices=[
        (
            signing.Mode.REQUIRED.value,
            'unsigned messages are refused; the default with a broker',
        ),
        (
            signing.Mode.PERMISSIVE.value,
            'unsigned messages are accepted with a warning, wrong signatures '
            'are refused: for upgrades, until all agents have their keys',
        ),
        (
            signing.Mode.NONE.value,
            'messages are not signed; for a bus in memory only, where it is '
            'the default',
        ),
    ],
    help='Whether agents and collectors must sign their messages. Without '
    'signatures any node with access to the broker can send as any host.',
)


class UnsafeBus(errors.VschedError):
    """Options that allow any node to send as any host."""

    code = errors.Code.BUS_UNAUTHENTICATED


def mode(conf: cfg.ConfigOpts, in_memory: bool) -> signing.Mode:
    """Return whether messages of the other side must be signed.

    :param in_memory: whether the bus does not leave this process.
    :raises UnsafeBus: when nothing is required on a broker.
    """
    found = conf.bus.authentication
    if found is None:
        return signing.Mode.NONE if in_memory else signing.Mode.REQUIRED
    if found == signing.Mode.NONE and not in_memory:
        raise UnsafeBus(
            '[bus] authentication = none is for a bus in memory only; with '
            'a broker it is required, or permissive during an upgrade'
        )
    return signing.Mode(found)
