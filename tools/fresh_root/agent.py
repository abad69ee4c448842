# SPDX-License-Identifier: Apache-2.0

"""Report as the host node-1 with four simulated instances, until SIGTERM.

The fourth has no reservation.

    /opt/vsched/bin/python agent.py CONFIG

CONFIG is the configuration of an agent: the bus, and the host's key.
"""

import sys
import time
import uuid

from oslo_config import cfg

from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import rpc
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys
from vsched_standalone.demo import agents
from vsched_standalone.demo import fleet


def main(path: str) -> None:
    """Deliver a report every second."""
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt('key_file')], group='bus')
    conf.register_opts([cfg.StrOpt('host')], group='agent')
    conf([], default_config_files=[path], default_config_dirs=[])
    key = signing.KeyFile(conf.bus.key_file, signing_keys.parse_host_key)
    epoch = uuid.uuid4().hex
    client = collector_rpc.CollectorClient(
        rpc.get_transport(conf),
        signer=signing.Signer(
            signing.Mode.REQUIRED, conf.agent.host, key.read, lambda: epoch
        ),
    )
    (member,) = fleet.build(1, 1, 4, time.time())
    member.host.name = conf.agent.host
    agent = agents.Agent(member, client, 60)
    while True:
        try:
            agent.deliver(time.time())
        except errors.Unreachable as problem:
            print(problem, file=sys.stderr, flush=True)
        time.sleep(1)


if __name__ == '__main__':
    main(sys.argv[1])
