# SPDX-License-Identifier: Apache-2.0

"""Every code vsched reports, in one place.

The strings are part of the public interface: clients compare them. They may
be added to, but never changed.

VschedError
 +-- InvalidExtraSpecs      extra specs that cannot be enforced
 +-- Refused                a valid reservation this host cannot hold
 +-- Unreachable            the other side of the bus did not answer
      +-- BusUnavailable    the broker did not take the message
"""

from collections.abc import Mapping
from collections.abc import Sequence
import enum
import typing as ty


class Code(enum.StrEnum):
    """Stable codes of errors, causes and events."""

    UNDEFINED = 'vsched.undefined_code'

    # Requests
    BAD_REQUEST = 'vsched.request.invalid'
    UNAUTHENTICATED = 'vsched.request.unauthenticated'
    FORBIDDEN = 'vsched.request.forbidden'
    NOT_FOUND = 'vsched.request.not_found'
    METHOD_NOT_ALLOWED = 'vsched.request.method_not_allowed'
    NOT_ACCEPTABLE = 'vsched.request.version_not_supported'
    UNSUPPORTED_MEDIA_TYPE = 'vsched.request.unsupported_media_type'
    TOO_LARGE = 'vsched.request.too_large'
    HEADERS_TOO_LARGE = 'vsched.request.headers_too_large'
    LENGTH_REQUIRED = 'vsched.request.length_required'
    REQUEST_TIMEOUT = 'vsched.request.timeout'
    REQUESTS_WAITING = 'vsched.request.too_many_waiting'
    INTERNAL = 'vsched.internal_error'
    DATABASE_UNAVAILABLE = 'vsched.database.unavailable'
    IDENTITY_UNAVAILABLE = 'vsched.identity.unavailable'
    BUS_UNAUTHENTICATED = 'vsched.bus.unauthenticated'

    # Resources
    HOST_NOT_FOUND = 'vsched.host.not_found'
    HOST_IN_USE = 'vsched.host.in_use'
    HOST_KEY_NOT_FOUND = 'vsched.host.key_not_found'
    INSTANCE_NOT_FOUND = 'vsched.instance.not_found'
    RESERVATION_NOT_FOUND = 'vsched.reservation.not_found'
    RESERVATION_EXISTS = 'vsched.reservation.exists'
    JOB_NOT_FOUND = 'vsched.job.not_found'
    JOB_EXISTS = 'vsched.job.exists'
    JOB_FINISHED = 'vsched.job.finished'
    JOB_CHANGING = 'vsched.job.changing'
    PROFILE_NOT_FOUND = 'vsched.profile.not_found'
    PLACEMENT_UNAVAILABLE = 'vsched.placement.unavailable'
    OVERRIDE_NOT_FOUND = 'vsched.reservation.override_not_found'
    GENERATION_CONFLICT = 'vsched.request.generation_conflict'
    INSTANCE_ABSENT = 'vsched.instance.absent'
    RESERVATION_CHANGING = 'vsched.reservation.changing'
    BALLOON_NOT_FOUND = 'vsched.balloon.not_found'
    BALLOON_ORDER_NOT_FOUND = 'vsched.balloon.order_not_found'

    # Why an instance does not have as many vCPUs online as ordered
    BALLOON_EXCLUDED = 'vsched.balloon.excluded'
    BALLOON_OUT_OF_BOUNDS = 'vsched.balloon.out_of_bounds'
    BALLOON_DOES_NOT_FIT = 'vsched.balloon.does_not_fit'
    BALLOON_DRY_RUN = 'vsched.balloon.dry_run'
    BALLOON_GUEST_AGENT_UNAVAILABLE = 'vsched.balloon.guest_agent_unavailable'

    # Why a reservation is not enforced as requested
    EXTRA_SPECS_INVALID = 'vsched.extra_specs.invalid'
    EXTRA_SPECS_UNAVAILABLE = 'vsched.extra_specs.unavailable'
    RESERVATION_INVALID = 'vsched.reservation.invalid'
    DOES_NOT_FIT = 'vsched.reservation.does_not_fit'
    KERNEL_REFUSED = 'vsched.reservation.kernel_refused'
    BACKEND_UNAVAILABLE = 'vsched.backend.unavailable'
    PINNING_UNSUPPORTED = 'vsched.backend.pinning_unsupported'
    NOT_CERTIFIED = 'vsched.reservation.not_certified'
    THREADS_GONE = 'vsched.instance.threads_gone'

    # Why the periods of an instance that waits on packets are not divided
    COMMUNICATION_UNSUPPORTED = 'vsched.communication.unsupported'
    COMMUNICATION_IO_UNHELD = 'vsched.communication.io_unheld'

    # Events
    RESERVATION_APPLIED = 'vsched.reservation.applied'
    RESERVATION_RELEASED = 'vsched.reservation.released'
    OVERRIDE_SET = 'vsched.reservation.override_set'
    OVERRIDE_REMOVED = 'vsched.reservation.override_removed'
    BALLOON_ORDERED = 'vsched.balloon.ordered'
    RESERVATION_DEGRADED = 'vsched.reservation.degraded'
    RESTORE_INCOMPLETE = 'vsched.restore.incomplete'
    DRIFT_REPAIRED = 'vsched.drift.repaired'
    IO_HELD = 'vsched.io.held'
    IO_REFUSED = 'vsched.io.refused'
    PERIOD_DIVIDED = 'vsched.period.divided'
    PERIOD_REFUSED = 'vsched.period.refused'
    BANDWIDTH_LEAKED = 'vsched.bandwidth.leaked'
    CAPACITY_CHANGED = 'vsched.capacity.changed'
    REPORTS_DROPPED = 'vsched.reports.dropped'
    REPORT_REJECTED = 'vsched.report.rejected'
    HOST_IMPLAUSIBLE = 'vsched.host.implausible'
    HOST_NOT_IN_NOVA = 'vsched.host.not_in_nova'
    HOST_OVERSTATED = 'vsched.host.overstated'
    HOST_WRONG_PROVIDER = 'vsched.host.wrong_provider'
    HOST_CONFIRMED = 'vsched.host.confirmed'
    INSTANCE_FOREIGN = 'vsched.instance.foreign'
    JOURNAL_NEW = 'vsched.journal.new'
    JOURNAL_REPLACED = 'vsched.journal.replaced'
    PROFILE_MEASURED = 'vsched.profile.measured'
    PROFILE_DRIFTED = 'vsched.profile.drifted'
    CERTIFICATES_WITHDRAWN = 'vsched.certificates.withdrawn'
    CERTIFICATES_GRANTED = 'vsched.certificates.granted'
    PROFILE_POOR = 'vsched.profile.poor'
    IO_UNPRICED = 'vsched.io.unpriced'
    JOB_FAILED = 'vsched.job.failed'
    BALLOON_TAKEN = 'vsched.balloon.taken'
    BALLOON_KEPT = 'vsched.balloon.kept'
    BALLOON_RETURNED = 'vsched.balloon.returned'
    BALLOON_FAILED = 'vsched.balloon.failed'
    BALLOON_PROPOSED = 'vsched.balloon.proposed'
    BALLOON_REFUSED = 'vsched.balloon.refused'
    JOURNAL_REBUILT = 'vsched.journal.rebuilt'
    JOURNAL_RECORD_UNREADABLE = 'vsched.journal.record_unreadable'
    JOURNAL_STORAGE_LOST = 'vsched.journal.storage_lost'
    JOURNAL_STORAGE_BACK = 'vsched.journal.storage_back'
    AGENT_STARTED = 'vsched.agent.started'
    CLOCK_SKEWED = 'vsched.clock.skewed'
    CLOCK_RIGHT = 'vsched.clock.right'
    HYPERVISOR_LOST = 'vsched.hypervisor.lost'
    HYPERVISOR_BACK = 'vsched.hypervisor.back'
    PLACEMENT_WAITING = 'vsched.placement.waiting'
    PLACEMENT_FAILED = 'vsched.placement.failed'
    PLACEMENT_SYNCED = 'vsched.placement.synced'
    PLACEMENT_OVERCLAIMED = 'vsched.placement.overclaimed'


class VschedError(Exception):
    """Base of all failures with a code.

    :ivar code: the stable code.
    :ivar detail: one sentence: what was wrong and what is accepted.
    """

    code = Code.UNDEFINED

    def __init__(self, detail: str, code: Code | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        if code is not None:
            self.code = code


class InvalidExtraSpecs(VschedError):
    """Extra specs in our namespace that cannot be enforced.

    :ivar problems: (key, what was wrong and what is accepted) pairs, every
        problem found, in the order of the keys.
    """

    code = Code.EXTRA_SPECS_INVALID

    def __init__(
        self, problems: Sequence[tuple[str, str]], code: Code | None = None
    ) -> None:
        self.problems = tuple(problems)
        super().__init__(
            '; '.join('%s: %s' % problem for problem in self.problems), code
        )


class Refused(VschedError):
    """A valid reservation that this host cannot hold.

    Nothing was changed when this is raised.

    :ivar figures: the numbers behind the refusal, ready for JSON.
    """

    code = Code.DOES_NOT_FIT

    def __init__(
        self,
        detail: str,
        code: Code | None = None,
        figures: Mapping[str, ty.Any] | None = None,
    ) -> None:
        super().__init__(detail, code)
        self.figures = dict(figures or {})


class Unreachable(VschedError):
    """The other side of the bus did not answer in time."""


class BusUnavailable(Unreachable):
    """The broker does not answer, or has no queue for the message.

    Or not in time: then the message may still arrive.
    """


class Unauthenticated(Unreachable):
    """One side of the bus could not authenticate the other.

    Nothing was changed. The request may be repeated once the keys are
    corrected.
    """

    code = Code.BUS_UNAUTHENTICATED
