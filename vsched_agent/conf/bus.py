# SPDX-License-Identifier: Apache-2.0

"""Options of how this host shows who it is on the bus."""

from collections.abc import Callable
import copy

from oslo_config import cfg

from vsched_lib.contract import bus
from vsched_lib.contract import rpc
from vsched_lib.contract import signing

bus_opts: list[cfg.Opt] = [
    cfg.StrOpt(
        'key_file',
        help='File with this host\'s key, as "vsched-manage host-key issue" '
        'makes it. Only its owner, who runs the agent, may have access '
        'to it. It is read again when it changes. Without it the agent '
        'enforces what it knows, and its reports wait.',
    ),
    cfg.StrOpt(
        'collector_version',
        default='auto',
        choices=[
            ('auto', 'the newest that the collectors answer to'),
            *((one, '') for one in rpc.COLLECTOR_VERSIONS),
        ],
        help="Version of the collector's interface that the agent uses. "
        'Nothing needs to be set for an upgrade.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    conf.register_group(copy.deepcopy(bus.GROUP))
    conf.register_opts([bus.AUTHENTICATION, *bus_opts], group=bus.GROUP.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [(bus.GROUP, [bus.AUTHENTICATION, *bus_opts])]


def signer(
    conf: cfg.ConfigOpts, in_memory: bool, epoch: Callable[[], str]
) -> signing.Signer:
    """What signs this host's requests.

    :param in_memory: the bus does not leave this process.
    :param epoch: the name of this run of the agent.
    :raises bus.UnsafeBus: when nothing would be signed, on a broker.
    """
    path = conf.bus.key_file
    file = signing.KeyFile(path, signing.parse_host_key) if path else None
    return signing.Signer(
        bus.mode(conf, in_memory),
        conf.agent.host,
        lambda: None if file is None else file.read(),
        epoch,
    )


def collector_client(
    conf: cfg.ConfigOpts, transport: object, epoch: Callable[[], str]
) -> rpc.CollectorClient:
    """The way to the collector, as the options say.

    :param transport: the bus.
    :param epoch: the name of this run of the agent.
    :raises bus.UnsafeBus: when nothing would be signed, on a broker.
    """
    version = conf.bus.collector_version
    return rpc.CollectorClient(
        transport,
        signer=signer(conf, rpc.in_memory(transport), epoch),
        version=None if version == 'auto' else version,
    )
