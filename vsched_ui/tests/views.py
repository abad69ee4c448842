# SPDX-License-Identifier: Apache-2.0

"""Every view of the page, over a fleet of :mod:`vsched_ui.tests.fleet`."""

from vsched_ui.tests import fleet

_HOST = fleet.host_name(1)
_PROFILES = '/hosts/%s?tab=' % _HOST

#: Of each view its path, its heading, and a text that is there once its data
#: is. The fleet has 40 hosts or more.
VIEWS: tuple[tuple[str, str, str], ...] = (
    ('', 'What is wrong', fleet.host_name(37)),
    ('/hosts', 'Hosts', _HOST),
    ('/hosts/%s' % _HOST, 'Instances', '-0001-01'),
    (_PROFILES + 'error', 'Error of CPU allocation', 'p99 of |error|'),
    (_PROFILES + 'overhead', 'Cost of I/O', 'packet received'),
    (_PROFILES + 'doctor', 'Doctor', 'can be used.'),
    (_PROFILES + 'jobs', _HOST, 'No jobs'),
    (_PROFILES + 'events', _HOST, 'vsched.drift.repaired'),
    ('/instances/%s' % fleet.instance_uuid(1, 1), 'Reserved and got', 'kept'),
    ('/reservations', 'Reservations', fleet.host_name(3)),
    ('/whatif', 'What if', 'Evaluate'),
    ('/balloons', 'Balloons', 'reverted'),
    ('/events', 'Events', 'vsched.reservation.does_not_fit'),
    ('/jobs', 'Jobs', 'overhead profile 1'),
    ('/evidence', 'Evidence', 'poor fit'),
)

#: By path.
PATHS = {path: (heading, text) for path, heading, text in VIEWS}
