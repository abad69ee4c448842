# SPDX-License-Identifier: Apache-2.0

"""Jobs of hosts."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import typing as ty

from vsched_client.v1 import base
from vsched_client import waiting

RUN, CANCEL = 'run', 'cancel'
DONE, FAILED, CANCELLED = 'done', 'failed', 'cancelled'
FINISHED = frozenset({DONE, FAILED, CANCELLED})
UNFINISHED = ('queued', 'running')


class Job(ty.TypedDict, total=False):
    """A job of a host."""

    uuid: str
    host: str
    kind: str
    wanted: str
    state: str
    attempt: int
    parameters: dict[str, ty.Any]
    progress_ppm: int
    detail: str
    eta_s: float | None
    created_at: str
    started_at: str | None
    updated_at: str


class Jobs(base.Noun):
    """``/v1/jobs``."""

    def list(
        self,
        host: str | None = None,
        states: Sequence[str] = (),
        kinds: Sequence[str] = (),
        limit: int | None = None,
    ) -> Iterator[Job]:
        """Iterate over jobs, newest first.

        :param states: any of these; none for all.
        :param kinds: any of these; none for all.
        :param limit: the most jobs to return; None for all.
        """
        return ty.cast(
            Iterator[Job],
            self._api.pages(
                'jobs',
                'jobs',
                query={
                    'host': host,
                    'state': base.repeated(states),
                    'kind': base.repeated(kinds),
                },
                limit=limit,
            ),
        )

    def get(self, uuid: str) -> Job:
        """Return one job."""
        return ty.cast(Job, self._api.one('job', 'GET', 'jobs', uuid))

    def cancel(self, uuid: str) -> Job:
        """Have the agent stop a job, or not begin with it."""
        return self._change(uuid, CANCEL)

    def resume(self, uuid: str) -> Job:
        """Have the agent go on with a job that was cancelled or failed."""
        return self._change(uuid, RUN)

    def wait(
        self,
        uuid: str,
        timeout_s: float,
        on_read: Callable[[Job], None] | None = None,
    ) -> Job:
        """Wait until a job has come to its end.

        :param on_read: called with each state that is read.
        :raises errors.TimedOut: when it has not.
        """
        return waiting.poll(
            lambda: self.get(uuid),
            lambda one: one.get('state') in FINISHED,
            timeout_s,
            'job %s has not come to its end' % uuid,
            on_read,
        )

    def _change(self, uuid: str, wanted: str) -> Job:
        return ty.cast(
            Job,
            self._api.one(
                'job', 'PATCH', 'jobs', uuid, body={'wanted': wanted}
            ),
        )
