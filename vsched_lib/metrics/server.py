# SPDX-License-Identifier: Apache-2.0

"""Serves the metrics of a process that serves nothing else over HTTP."""

import dataclasses
import ssl
import sys
import threading
import typing as ty
from wsgiref import simple_server

from oslo_config import cfg
from oslo_log import log as logging
import prometheus_client
from prometheus_client import registry as registries

from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)

#: How long a client may take to send its request, in seconds.
_CLIENT_TIMEOUT_S = 10


def options(process: str, more: str = '') -> list[cfg.Opt]:
    """Return the options of a server, for the group of its process.

    :param process: whose metrics these are, as in "the agent".
    :param more: sentences on the ports of other processes.
    """
    return [
        cfg.HostAddressOpt(
            'metrics_bind_host',
            default='127.0.0.1',
            help='Address on which the metrics of %s are served to '
            'Prometheus. They are served without authentication unless '
            'metrics_client_ca_file is set.' % process,
        ),
        cfg.PortOpt(
            'metrics_bind_port',
            default=0,
            help=' '.join(
                (
                    'Port on which the metrics of %s are served; 0 does not '
                    'serve them. Several processes on one host need a port '
                    'each.' % process,
                    *filter(None, (more,)),
                )
            ),
        ),
        cfg.StrOpt(
            'metrics_cert_file',
            help='File with the certificate of the metrics server, in PEM '
            'form. Without it the metrics are served over HTTP without TLS.',
        ),
        cfg.StrOpt(
            'metrics_key_file',
            help='File with the private key of metrics_cert_file.',
        ),
        cfg.StrOpt(
            'metrics_client_ca_file',
            help='File with the certificates of authorities. Only clients '
            'with a certificate of one of them can read the metrics. Needs '
            'metrics_cert_file.',
        ),
    ]


class UnusableEndpoint(errors.VschedError):
    """The metrics cannot be served as the options require."""

    code = errors.Code.INTERNAL


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Where metrics are served.

    :param group: of the options, for messages.
    :param port: 0 for nowhere.
    """

    group: str
    host: str
    port: int
    cert_file: str | None = None
    key_file: str | None = None
    client_ca_file: str | None = None

    @classmethod
    def of(cls, conf: cfg.ConfigOpts, group: str) -> 'Settings':
        """Return the settings in a group with :func:`options`."""
        found = conf[group]
        return cls(
            group,
            found.metrics_bind_host,
            found.metrics_bind_port,
            found.metrics_cert_file,
            found.metrics_key_file,
            found.metrics_client_ca_file,
        )


class Server:
    """Serves metrics to Prometheus.

    :param registry: of what is served.
    """

    def __init__(
        self, settings: Settings, registry: registries.CollectorRegistry
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._server: simple_server.WSGIServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """Return the port while it serves; 0 otherwise."""
        return 0 if self._server is None else self._server.server_port

    def start(self) -> None:
        """Start to serve; does nothing without a port.

        :raises UnusableEndpoint: when the options contradict each other, or
            the address or a file cannot be used.
        """
        settings = self._settings
        if not settings.port:
            return
        if bool(settings.cert_file) != bool(settings.key_file):
            raise UnusableEndpoint(
                '[%s] metrics_cert_file and metrics_key_file are set both, '
                'or none of them' % settings.group
            )
        if settings.client_ca_file and not settings.cert_file:
            raise UnusableEndpoint(
                '[%s] metrics_client_ca_file needs metrics_cert_file'
                % settings.group
            )
        try:
            self._server, self._thread = prometheus_client.start_http_server(
                settings.port,
                settings.host,
                self._registry,
                settings.cert_file,
                settings.key_file,
                settings.client_ca_file,
                client_auth_required=bool(settings.client_ca_file),
            )
        except (OSError, OverflowError) as problem:
            # ssl.SSLError is an OSError; a port above 65535 overflows.
            raise UnusableEndpoint(
                'metrics cannot be served on %s port %d: %s'
                % (settings.host, settings.port, problem)
            ) from problem
        _bound(self._server)
        LOG.info(
            'Metrics are served on %s port %d%s',
            settings.host,
            self.port,
            ' over TLS' if settings.cert_file else '',
        )

    def stop(self) -> None:
        """Stop to serve."""
        server, self._server = self._server, None
        if server is None:
            return
        server.shutdown()
        server.server_close()
        if self._thread is not None:
            self._thread.join()


def _bound(server: ty.Any) -> None:
    """Let no client hold up others, or keep a thread for long."""

    class Handler(server.RequestHandlerClass):  # type: ignore[misc]
        timeout = _CLIENT_TIMEOUT_S

    server.RequestHandlerClass = Handler
    server.handle_error = _log_failure
    if isinstance(server.socket, ssl.SSLSocket):
        # A TLS handshake belongs to the thread of its client. typeshed lacks
        # the attribute.
        listening: ty.Any = server.socket
        listening.do_handshake_on_connect = False


def _log_failure(request: object, address: object) -> None:
    # Instead of a traceback: anyone can send what is no request.
    LOG.info('Metrics: a request of %s failed: %s', address, sys.exc_info()[1])
