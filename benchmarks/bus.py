# SPDX-License-Identifier: Apache-2.0

"""A broker's virtual host for a benchmark, and a collector on it."""

from collections.abc import Iterator
import contextlib
import os
import subprocess
import uuid

from oslo_config import cfg

from benchmarks import frame
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.tests import bus_keys
from vsched_lib.tests import rabbitmq

BROKER = os.environ.get(
    'VSCHED_BENCH_RABBITMQ_URL', 'rabbit://guest:guest@127.0.0.1:5672'
)


class Collector(collector_rpc.CollectorEndpoint):
    """Counts what it is told."""

    def __init__(self) -> None:
        self.batches = 0
        self.samples = 0

    def on_report(
        self, report: messages.Report
    ) -> collector_replies.ReportReply:
        self.batches += 1
        self.samples += len(report.usage)
        return collector_replies.ReportReply(False, 0)

    def on_overrides(self, host: str) -> collector_replies.Overrides:
        return collector_replies.Overrides(0)

    def on_jobs(self, host: str) -> messages.Jobs:
        return messages.Jobs(0)


@contextlib.contextmanager
def collector() -> Iterator[tuple[str, Collector]]:
    """A collector of this process, on a virtual host of its own.

    :returns: the transport URL and the collector.
    :raises frame.Unavailable: without a broker.
    """
    name = 'vsched-bench-' + uuid.uuid4().hex
    user = BROKER.partition('//')[2].partition(':')[0]
    try:
        rabbitmq.control('add_vhost', name)
        rabbitmq.control('set_permissions', '-p', name, user, '.*', '.*', '.*')
    except (OSError, subprocess.CalledProcessError) as error:
        raise frame.Unavailable(
            'needs RabbitMQ: %s %s'
            % (error, getattr(error, 'stderr', None) or '')
        ) from error
    try:
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        url = '%s/%s' % (BROKER, name)
        transport = rpc.get_transport(conf, url)
        endpoint = Collector()
        endpoint.authenticator = bus_keys.Authenticator()
        server = rpc.get_server(
            transport, collector_rpc.TOPIC, 'bench', [endpoint]
        )
        server.start()
        try:
            yield url, endpoint
        finally:
            server.stop()
            server.wait()
            transport.cleanup()
    finally:
        rabbitmq.control('delete_vhost', name)
