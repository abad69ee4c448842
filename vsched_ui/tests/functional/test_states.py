# SPDX-License-Identifier: Apache-2.0

"""What each view shows before it has data, without any, and after failures."""

import re

import ddt

from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_ui.tests import failing_case
from vsched_ui.tests import fleet
from vsched_ui.tests import page_case
from vsched_ui.tests import views

API = re.compile('/v1/')
WHATIF = '/whatif'
#: How the titles of empty states begin.
_NONE = re.compile(r'^(No|Nothing)\b')
_HOST = fleet.host_name(1)
_INSTANCE = fleet.instance_uuid(1, 1)
_AT_HOST = '/hosts/%s?tab=' % _HOST
_AT_INSTANCE = '/instances/' + _INSTANCE

#: Of a view that consists of one thing, what is there if that is not.
_MENU = ('navigation', 'Views')

#: Of each view its requests that may fail by themselves: their addresses, and
#: the roles and names of what shows their answers.
REQUESTS = {
    '': {
        r'/hosts\?': ('img', 'Hosts by the part of their capacity'),
        r'/snapshot': ('grid', 'Hosts by their largest measured error'),
        r'/usage\?': ('grid', 'Hosts by what they withheld'),
        r'/events\?limit=10$': ('grid', 'Events'),
    },
    '/hosts': {r'/hosts\?': ('grid', 'Hosts')},
    '/hosts/' + _HOST: {
        r'/instances\?': ('grid', 'Instances of ' + _HOST),
        r'/usage\?host=': ('img', 'CPU time of ' + _HOST),
    },
    _AT_HOST + 'error': {
        r'/hosts/.*/profiles/error$': ('grid', 'Errors with')
    },
    _AT_HOST + 'overhead': {
        r'/hosts/.*/profiles/overhead$': ('grid', 'Prices of I.O')
    },
    # Of the host alone, as below.
    _AT_HOST + 'doctor': {},
    _AT_HOST + 'jobs': {r'/jobs\?': ('grid', 'Jobs')},
    _AT_HOST + 'events': {r'/events\?host=': ('grid', 'Events')},
    _AT_INSTANCE: {
        r'/reservations\?instance_uuid=': ('button', 'Change reservation'),
        r'/usage\?instance_uuid=': ('img', 'got .* on average'),
        r'/balloons\?instance_uuid=': ('button', 'Freeze'),
        r'/balloons/history\?': ('grid', 'History of balloons'),
        r'/events\?instance_uuid=': ('grid', 'Events'),
    },
    '/reservations': {r'/reservations\?limit=': ('grid', 'Reservations')},
    '/balloons': {
        r'/balloons\?limit=': ('grid', 'Balloons'),
        r'/balloons/history\?': ('grid', 'History of balloons'),
    },
    '/events': {r'/events\?limit=100$': ('grid', 'Events')},
    '/jobs': {r'/jobs\?': ('grid', 'Jobs')},
    '/evidence': {
        r'/snapshot': ('grid', 'Error certificates'),
        r'/jobs\?kind=profile-overhead': ('grid', 'Prices of I.O'),
    },
    # Reads on demand only: it has a test of its own.
    WHATIF: {},
}

#: Views of one thing, without which nothing of them is shown.
ONE_THING = {
    '/hosts/' + _HOST: (r'/hosts/%s$' % _HOST, 'Instances'),
    _AT_INSTANCE: (r'/instances/', 'Reserved and got'),
}

#: What the overview needs to state that nothing is wrong.
NEEDED = (
    r'/hosts\?',
    r'/reservations\?.*state=refused',
    r'/reservations\?.*state=pending',
    r'/jobs\?',
)

_START = (
    'Start vsched-agent on a compute host: the host is here once its agent '
    'has reported. “vsched-agent doctor” there lists what is missing.'
)
_EVENTS = (
    'Refusals, repaired drift and changes by operators are here once there '
    'are any.'
)
_TAKEN = (
    'vCPUs that are taken from instances, and given back, are here once there '
    'are any.'
)

#: What a fleet without a host has of each view.
NO_HOST = {
    '': (
        'none reports yet',
        'No host reports yet',
        _START,
        'No usage in the last minutes',
        'No host has measured its error profile',
        '“Measure now” on the view of a host starts a run.',
        'No events',
        _EVENTS,
    ),
    '/hosts': ('No host reports yet', _START),
    '/reservations': (
        'No reservations',
        'Instances have one by their flavor, or by an override on their view.',
    ),
    WHATIF: ('No host reports yet', _START),
    '/balloons': (
        'No instance may be ballooned',
        'Set vsched:balloon=auto in the extra specs of a flavor: its '
        'instances are here once they run.',
        'No balloons yet',
        _TAKEN,
    ),
    '/events': ('No events', _EVENTS),
    '/jobs': ('No jobs', '“Measure now” on the view of a host orders one.'),
    '/evidence': ('No host reports yet', _START),
}

#: What a host without an instance, and an instance without a reservation,
#: have of each view.
NOTHING_YET = {
    '/hosts/' + _HOST: (
        'No usage in the last minutes',
        'No instances run here',
    ),
    _AT_HOST + 'error': (
        'Not measured yet',
        'How far the CPU time that this host gives is from what was reserved.',
    ),
    _AT_HOST + 'overhead': (
        'Not measured yet',
        'What packets and blocks of instances cost this host in CPU time.',
    ),
    _AT_HOST + 'doctor': ('Not compared yet.',),
    _AT_HOST + 'jobs': (
        'No jobs',
        '“Measure now” on the view of a host orders one.',
    ),
    _AT_HOST + 'events': ('No events',),
    _AT_INSTANCE: (
        'Nothing is reserved for this instance',
        'Reserve CPU time',
        'No usage in this range',
        'Left alone',
        'Not ballooned',
        'Its flavor does not allow it, and nothing is ordered.',
        'No balloons yet',
        'No events',
    ),
}


class Case(failing_case.FailingCase):
    def found(self, tab, role, name):
        """Return what has a role, and a name that contains an expression."""
        return tab.page.get_by_role(role, name=re.compile(name)).first

    def try_again(self, tab):
        """Use all buttons to request what failed, until none is left."""
        buttons = self.button(tab, 'Try again')
        # At once: each that is used goes away by itself.
        buttons.evaluate_all('all => all.forEach((one) => one.click())')
        self.chromium.expect(buttons).to_have_count(0)
        self.wait_for_data(tab)

    def ask(self, tab, path):
        """Request what a view reads on demand only."""
        if path == WHATIF:
            self.button(tab, 'Evaluate').click()


@ddt.ddt
class TestLoading(Case):
    """Requests that are not answered yet."""

    @ddt.data(*views.PATHS)
    def test_a_view_shows_that_it_is_loading(self, path):
        tab = self.still()
        # Never answered.
        tab.page.route(API, lambda route: None)
        self.go(tab, path)
        self.found(tab, *_MENU).wait_for()
        self.ask(tab, path)
        if path == WHATIF:
            self.found(tab, 'progressbar', '').wait_for()
            self.chromium.expect(self.button(tab, 'Evaluate')).to_be_disabled()
        else:
            self.found(tab, 'status', '^Loading$').wait_for()
            # Neither data nor a statement that there is none.
            text = views.PATHS[path][1]
            self.assertFalse(
                tab.page.get_by_text(text).filter(visible=True).count()
            )
        self.assertFalse(tab.page.get_by_text(_NONE).count())
        self.assertEqual([], tab.errors)


@ddt.ddt
class TestFailures(Case):
    """Answers that are errors."""

    def test_every_view_is_listed(self):
        self.assertEqual(set(views.PATHS), set(REQUESTS))

    @ddt.data(*(path for path, of in REQUESTS.items() if of))
    def test_each_part_shows_its_failure(self, path):
        tab = self.still()
        parts = REQUESTS[path]
        with self.failing(tab, 403, *parts):
            self.go(tab, path)
            headings = tab.page.get_by_role('heading', name='Not allowed')
            headings.nth(len(parts) - 1).wait_for()
            self.see(tab, 'as the test chose', exact=False)
            self.see(tab, 'req-of-the-test', exact=False)
            self.wait_for_data(tab)
            for shown in parts.values():
                self.assertFalse(self.found(tab, *shown).count(), shown)
            self.assertEqual([], tab.axe())
        self.try_again(tab)
        for shown in parts.values():
            self.found(tab, *shown).wait_for()
        self.assertEqual([], page_case.other_errors(tab))

    @ddt.data(*ONE_THING)
    def test_a_view_of_one_thing(self, path):
        address, heading = ONE_THING[path]
        tab = self.still()
        with self.failing(tab, 500, address):
            self.go(tab, path)
            self.see_heading(tab, 'This could not be read')
            self.found(tab, *_MENU).wait_for()
        self.try_again(tab)
        self.see_heading(tab, heading)
        self.assertEqual([], page_case.other_errors(tab))

    def test_reservations_of_a_host_that_are_not_known(self):
        tab = self.still()
        none = tab.page.get_by_role('cell', name='none', exact=True)
        with self.failing(tab, 500, r'/reservations\?'):
            self.go(tab, '/hosts/' + _HOST)
            self.see(tab, 'What is reserved for these instances is not known.')
            self.found(tab, 'grid', 'Instances of ' + _HOST).wait_for()
            self.assertFalse(none.count())
        self.try_again(tab)
        self.see(tab, 'applied')

    def test_work_for_io_that_is_not_known(self):
        tab = self.still()
        alone = tab.page.get_by_role('heading', name='Left alone')
        with self.failing(tab, 500, r'/reservations\?'):
            self.go(tab, _AT_INSTANCE)
            work = tab.page.get_by_role(
                'region', name='Work of the host for its I/O'
            )
            work.get_by_role(
                'heading', name='This could not be read'
            ).wait_for()
            self.assertFalse(alone.count())
        self.try_again(tab)
        self.chromium.expect(work).to_contain_text('Charging')

    def test_jobs_that_are_not_known(self):
        tab = self.still()
        measure = tab.page.get_by_role('button', name='Measure now, quickly')
        with self.failing(tab, 500, r'/jobs\?'):
            self.go(tab, _AT_HOST + 'error')
            self.see(tab, 'as the test chose', exact=False)
            # One may be under way.
            self.chromium.expect(measure).to_be_disabled()

    def test_usage_of_hosts_that_is_not_known(self):
        tab = self.still()
        unknown = tab.page.get_by_title('no usage in the last minutes')
        failed = tab.page.get_by_title('the usage could not be read')
        with self.failing(tab, 500, r'/usage\?'):
            self.go(tab, '/hosts')
            self.see(tab, 'could not be read: as the test chose', exact=False)
            failed.first.wait_for()
            self.assertFalse(unknown.count())
        # Hosts that are down have none.
        self.go(tab, '/hosts?hosts.state=down')
        unknown.first.wait_for()
        self.assertFalse(failed.count())

    def test_an_evaluation_that_fails(self):
        tab = self.tab(WHATIF)
        alert = tab.page.get_by_role('alert')
        with self.failing(tab, 403, '/evaluations'):
            self.ask(tab, WHATIF)
            alert.get_by_text('as the test chose').wait_for()
            alert.get_by_text('vsched.of.the.test').wait_for()
            self.assertEqual([], tab.axe())
        # The form is as it was.
        self.ask(tab, WHATIF)
        self.found(tab, 'grid', 'Evaluated hosts').wait_for()
        self.chromium.expect(alert).to_have_count(0)
        self.assertEqual([], page_case.other_errors(tab))


#: Of views that are read again after some seconds, the requests that fail
#: then, what they have shown, and how the note about them begins.
LATER = (
    (
        '/balloons',
        r'/balloons\?limit=',
        ('grid', 'Balloons'),
        'The list is not up to date: it was read at',
    ),
    (
        '/balloons',
        r'/balloons/history\?',
        ('grid', 'History of balloons'),
        'The list is not up to date: it was read at',
    ),
    (
        '/events',
        r'/events\?limit=100$',
        ('grid', 'Events'),
        'The list is not up to date: it was read at',
    ),
    (
        '/jobs',
        r'/jobs\?',
        ('grid', 'Jobs'),
        'The list is not up to date: it was read at',
    ),
    (
        '',
        r'/reservations\?.*state=refused',
        ('region', 'What is wrong'),
        'What is wrong is not up to date: it was read at',
    ),
    (
        '',
        r'/snapshot',
        ('grid', 'Hosts by their largest measured error'),
        'This is not up to date: it was read at',
    ),
    (
        '/hosts/' + _HOST,
        r'/instances\?',
        ('grid', 'Instances of ' + _HOST),
        'The list is not up to date: it was read at',
    ),
    (
        '/hosts/' + _HOST,
        r'/reservations\?',
        ('grid', 'Instances of ' + _HOST),
        'What is reserved is not up to date: it was read at',
    ),
    (
        _AT_INSTANCE,
        '/usage',
        ('img', 'got .* on average'),
        'The usage is not up to date: it was read at',
    ),
    (
        _AT_INSTANCE,
        '/instances/',
        ('img', 'got .* on average'),
        'This is not up to date: it was read at',
    ),
)


@ddt.ddt
class TestLaterFailures(Case):
    """Answers that are errors after a first one that was none."""

    @ddt.data(*LATER)
    @ddt.unpack
    def test_old_data_is_not_shown_as_new(self, path, address, shown, note):
        tab = self.tab(path)
        found = self.found(tab, *shown)
        found.wait_for()
        notes = tab.page.get_by_text(note)
        self.assertFalse(notes.count())
        with self.failing(tab, 500, address):
            notes.first.wait_for()
            self.see(
                tab,
                'It could not be read again: as the test chose',
                exact=False,
            )
            self.chromium.expect(found).to_be_visible()
            self.assertEqual([], tab.axe())
        self.chromium.expect(notes).to_have_count(0)
        self.assertEqual([], page_case.other_errors(tab))


@ddt.ddt
class TestNoHost(Case):
    """A fleet whose agents have not reported yet."""

    hosts = 0

    @ddt.data(*NO_HOST)
    def test_a_view_names_what_is_missing(self, path):
        tab = self.tab(path)
        self.ask(tab, path)
        for text in NO_HOST[path]:
            self.see(tab, text)
        self.check(tab)

    @ddt.data(*ONE_THING)
    def test_a_view_of_what_there_is_not(self, path):
        tab = self.tab(path)
        self.see_heading(tab, 'Not found')
        self.button(tab, 'Try again').wait_for()
        self.found(tab, *_MENU).wait_for()
        self.assertEqual([], tab.axe())
        self.assertEqual([], page_case.other_errors(tab))


@ddt.ddt
class TestNothingYet(Case):
    """A host, and an instance, of which nothing is known but their names."""

    hosts = 0

    @classmethod
    def populate(cls):
        # Without findings: nothing is wrong.
        cls.add_host(1).send(host_info=base.host_info())
        cls.add_host(
            2, messages.InstanceInfo(_INSTANCE, 'instance-00000001', 2)
        )

    @ddt.data(*NOTHING_YET)
    def test_a_view_names_what_is_missing(self, path):
        tab = self.tab(path)
        for text in NOTHING_YET[path]:
            # Titles of alerts begin with hidden text.
            self.see(tab, text, exact=False)
        self.check(tab)

    @ddt.data(*NEEDED)
    def test_nothing_is_wrong_only_if_that_is_known(self, address):
        tab = self.still()
        held = 'every reservation is held'
        with self.failing(tab, 500, address):
            self.go(tab, '')
            wrong = tab.page.get_by_role('region', name='What is wrong')
            wrong.get_by_role(
                'heading', name='This could not be read'
            ).wait_for()
            self.assertFalse(tab.page.get_by_text(held).count())
        self.try_again(tab)
        self.see(tab, held, exact=False)

    def test_every_view_has_an_empty_state(self):
        self.assertEqual(set(views.PATHS), {*NO_HOST, *NOTHING_YET})
