# SPDX-License-Identifier: Apache-2.0

"""What agents ask of the collector.

1.0  report(report), overrides(host)
1.1  jobs(host)
1.2  requests and replies are signed, reports have epochs
1.3  reports have their samples by column

What messages gained since, such as balloons in reports and in overrides,
needs no version: readers ignore keys that they do not know, and an agent
that reports no balloons gets no orders for them. A signature is such an
addition too: the context of a request has it, and a key of the reply.

An agent asks for the newest version that it knows. When a collector does not
have it, it asks for the one before and so on, and for the newest again some
minutes later. So either side may be upgraded first, and collectors one by one.
"""

import time
import typing as ty

from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import request_context
from vsched_lib.contract import rpc
from vsched_lib.contract import signing
from vsched_lib.contract import wire

TOPIC = 'vsched-collector'
VERSION = '1.3'
#: Those whose reports have one object for each sample.
ROW_VERSIONS = ('1.2', '1.1')
#: Those that an agent asks for, the newest first.
VERSIONS = ('1.3', *ROW_VERSIONS)

#: How long an agent waits for the collector before it keeps the batch and
#: tries again later, in seconds.
REPORT_TIMEOUT_S = 10
#: How long a request may wait for a connection besides, in seconds.
CONNECT_S = 1

#: How long an agent uses an older version that a collector asked for before
#: it tries the newest again, in seconds.
OLD_VERSION_S = 300.0


class Caller:
    """The sender of a request; this one is not authenticated.

    :ivar host: the authenticated host; None without authentication.
    """

    host: str | None = None

    def seal(self, method: str, reply: dict[str, ty.Any]) -> dict[str, ty.Any]:
        """Return the reply in the form that the caller can verify."""
        return reply

    def confirm(self) -> None:
        """Record that the request was the newest one of its host."""


ANYBODY = Caller()


class Authenticator:
    """Authenticates requests; this one accepts all of them."""

    def admit(
        self,
        method: str,
        arguments: dict[str, ty.Any],
        signature: object,
        reads: bool,
    ) -> Caller:
        """Return the sender of a request.

        :param signature: of the request, None without any.
        :param reads: whether it changes nothing.
        :raises errors.Unauthenticated: when it must not be answered.
        """
        return ANYBODY


def _check_host(caller: Caller, host: object) -> None:
    if caller.host is not None and host != caller.host:
        raise errors.Unauthenticated(
            '%s may send for itself only, not for %s'
            % (ascii(caller.host), ascii(host)[:64])
        )


class CollectorEndpoint:
    """The collector's side: turns JSON into messages and back.

    :param on_report: stores a batch and returns the reply.
    :param on_overrides: returns a host's overrides.
    :param on_jobs: returns a host's unfinished jobs.
    :cvar authenticator: returns who sent a request. The default accepts
        any sender, which is for a bus in memory.
    """

    target = rpc.target(VERSION)
    authenticator = Authenticator()

    def __init__(
        self,
        on_report: ty.Callable[
            [messages.Report], collector_replies.ReportReply
        ],
        on_overrides: ty.Callable[[str], collector_replies.Overrides],
        on_jobs: ty.Callable[[str], messages.Jobs],
    ) -> None:
        self.on_report = on_report
        self.on_overrides = on_overrides
        self.on_jobs = on_jobs

    @rpc.expose
    @rpc.expected_errors
    def report(
        self, ctxt: dict[str, ty.Any], report: dict[str, ty.Any]
    ) -> dict[str, ty.Any]:
        """Store a batch; answer only when it is committed."""
        request_context.incoming(ctxt)
        caller = self.authenticator.admit(
            'report', {'report': report}, ctxt.get(signing.FIELD), reads=False
        )
        _check_host(
            caller, report.get('host') if isinstance(report, dict) else None
        )
        try:
            batch = messages.Report.from_dict(report)
        except wire.MalformedMessage as problem:
            reply = self.on_malformed_report(report, problem)
        else:
            reply = self.on_report(batch)
        if reply.epoch_state is collector_replies.EpochState.CURRENT:
            caller.confirm()
        return caller.seal('report', reply.to_dict())

    @rpc.expose
    @rpc.expected_errors
    def overrides(
        self, ctxt: dict[str, ty.Any], host: str
    ) -> dict[str, ty.Any]:
        """Return every override of one host."""
        return self._answer('overrides', ctxt, host, self.on_overrides)

    @rpc.expose
    @rpc.expected_errors
    def jobs(self, ctxt: dict[str, ty.Any], host: str) -> dict[str, ty.Any]:
        """Return every unfinished job of one host."""
        return self._answer('jobs', ctxt, host, self.on_jobs)

    def _answer(
        self,
        method: str,
        ctxt: dict[str, ty.Any],
        host: str,
        find: ty.Callable[[str], wire.Message],
    ) -> dict[str, ty.Any]:
        request_context.incoming(ctxt)
        caller = self.authenticator.admit(
            method, {'host': host}, ctxt.get(signing.FIELD), reads=True
        )
        _check_host(caller, host)
        return caller.seal(method, find(host).to_dict())

    def on_malformed_report(
        self, report: object, problem: wire.MalformedMessage
    ) -> collector_replies.ReportReply:
        """Handle a batch that cannot be parsed.

        An agent sends a batch until it is answered, so raising, as this
        does, blocks all later ones.
        """
        raise problem


class CollectorClient:
    """The agent's client of the collector.

    :param timeout_s: longest wait for an answer in seconds.
    :param signer: signs requests and verifies replies; None on a bus in
        memory.
    :param version: of the collector's interface; the newest that it has
        when None.
    :param clock: monotonic, in seconds.
    """

    def __init__(
        self,
        transport: ty.Any,
        timeout_s: int = REPORT_TIMEOUT_S,
        signer: signing.Signer | None = None,
        version: str | None = None,
        clock: ty.Callable[[], float] = time.monotonic,
    ) -> None:
        self._signer = signer
        self._versions = VERSIONS if version is None else (version,)
        self._clock = clock
        # The version that is asked for first, until then.
        self._first = 0
        self._old_until_s: float | None = None
        # A broker that was restarted has no queue until a collector has
        # connected again: an agent learns of it at once, not by a timeout.
        self._client = rpc.get_client(
            transport, TOPIC, self._versions[0], timeout_s, must_arrive=True
        )
        # The call's own timeout has the better message: it should come first.
        self._bounded = rpc.Bounded('collector', timeout_s + CONNECT_S)

    def report(self, report: messages.Report) -> collector_replies.ReportReply:
        """Deliver one batch.

        :raises errors.Unreachable: when it is not known to be stored.
        :raises wire.MalformedMessage: when the answer is invalid.
        """
        return collector_replies.ReportReply.from_dict(
            self._call(
                'report',
                lambda version: {
                    'report': report.to_dict(version not in ROW_VERSIONS)
                },
            )
        )

    def overrides(self, host: str) -> collector_replies.Overrides:
        """Fetch a host's overrides.

        :raises errors.Unreachable: without an answer.
        :raises wire.MalformedMessage: when the answer is invalid.
        """
        return collector_replies.Overrides.from_dict(
            self._call('overrides', lambda _: {'host': host})
        )

    def jobs(self, host: str) -> messages.Jobs:
        """Fetch a host's unfinished jobs.

        :raises errors.Unreachable: without an answer.
        :raises wire.MalformedMessage: when the answer is invalid.
        """
        return messages.Jobs.from_dict(
            self._call('jobs', lambda _: {'host': host})
        )

    def _call(
        self, method: str, arguments: ty.Callable[[str], dict[str, ty.Any]]
    ) -> ty.Any:
        if self._old_until_s is None or self._clock() >= self._old_until_s:
            self._first = 0
        for number in range(self._first, len(self._versions)):
            version = self._versions[number]
            try:
                reply = self._call_version(version, method, arguments(version))
            except rpc.UnsupportedVersion:
                if number + 1 == len(self._versions):
                    raise
                continue
            if number > self._first:
                self._first = number
                self._old_until_s = self._clock() + OLD_VERSION_S
            return reply

    def _call_version(
        self, version: str, method: str, arguments: dict[str, ty.Any]
    ) -> ty.Any:
        context = request_context.outgoing()
        signed = None
        if self._signer is not None:
            signed = self._signer.sign(method, arguments)
            if signed is not None:
                context[signing.FIELD] = signed[1].to_dict()
        reply = self._bounded.run(
            method,
            lambda: self._client.prepare(version=version).call(
                context, method, **arguments
            ),
        )
        if self._signer is None:
            return reply
        return self._signer.check(method, signed, reply)
