# SPDX-License-Identifier: Apache-2.0

"""The token of Prometheus: for ``/metrics`` only, beside keystone's."""

import hmac

import flask
from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.conf import metrics
from vsched_lib.contract import signing

LOG = logging.getLogger(__name__)

_SCHEME = 'bearer'


class ScrapeTokens:
    """The tokens of the file in ``[metrics] token_file``.

    :param conf: has the options of :mod:`vsched_api.conf.metrics`.
    """

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._file = metrics.token_file(conf)

    def match(self, request: flask.Request) -> bool:
        """Return whether a request carries one of them.

        A file that cannot be used matches nothing; the log has the reason.
        """
        if self._file is None:
            return False
        scheme, _, given = request.headers.get('Authorization', '').partition(
            ' '
        )
        if scheme.lower() != _SCHEME:
            return False
        try:
            tokens = self._file.read()
        except signing.KeyFileError as problem:
            LOG.error('[metrics] token_file: %s', problem)
            return False
        text = given.strip().encode('utf-8', 'replace')
        # All of them: the time must not depend on which one matches.
        matches = [
            hmac.compare_digest(token.encode(), text) for token in tokens
        ]
        return any(matches)
