# SPDX-License-Identifier: Apache-2.0

"""Options of [bus] for the agent: its key and the collector's version."""

from collections.abc import Callable
import copy

from oslo_config import cfg

from vsched_lib.contract import bus
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import rpc
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys

bus_opts: list[cfg.Opt] = [
    cfg.StrOpt(
        'key_file',
        help='File with the key of this host, as created by "vsched-manage '
        'host-key issue". It must be accessible to its owner only, the '
        'user that runs the agent. It is read again when it changes. '
        'Without it the agent enforces the reservations that it has, '
        'and keeps its reports in the outbox.',
    ),
    cfg.StrOpt(
        'collector_version',
        default='auto',
        choices=[
            ('auto', 'the newest version that the collectors support'),
            *((one, '') for one in collector_rpc.VERSIONS),
        ],
        help="Version of the collector's RPC interface that the agent uses. "
        'Upgrades do not need this option.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(bus.GROUP))
    conf.register_opts([bus.AUTHENTICATION, *bus_opts], group=bus.GROUP.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(bus.GROUP, [bus.AUTHENTICATION, *bus_opts])]


def signer(
    conf: cfg.ConfigOpts, in_memory: bool, epoch: Callable[[], str]
) -> signing.Signer:
    """Return the signer of this host's messages.

    :param in_memory: whether the bus does not leave this process.
    :param epoch: returns the name of this run of the agent.
    :raises bus.UnsafeBus: when nothing would be signed, on a broker.
    """
    path = conf.bus.key_file
    file = signing.KeyFile(path, signing_keys.parse_host_key) if path else None
    return signing.Signer(
        bus.mode(conf, in_memory),
        conf.agent.host,
        lambda: None if file is None else file.read(),
        epoch,
    )


def collector_client(
    conf: cfg.ConfigOpts, transport: object, epoch: Callable[[], str]
) -> collector_rpc.CollectorClient:
    """Return the RPC client of the collector.

    :param transport: the bus.
    :param epoch: returns the name of this run of the agent.
    :raises bus.UnsafeBus: when nothing would be signed, on a broker.
    """
    version = conf.bus.collector_version
    return collector_rpc.CollectorClient(
        transport,
        signer=signer(conf, rpc.in_memory(transport), epoch),
        version=None if version == 'auto' else version,
    )
