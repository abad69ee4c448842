# SPDX-License-Identifier: Apache-2.0

"""The views of the operators' page, opened and timed for its benchmark."""

import abc
import contextlib
import typing as ty

from vsched_ui.tests import browser
from vsched_ui.tests import fleet
from vsched_ui.tests import measurements

#: Methods of :class:`Views`.
VIEWS = (
    'overview',
    'hosts',
    'reservations',
    'instances',
    'instance',
    'balloons',
    'events',
    'jobs',
    'whatif',
    'evidence',
)

#: Resolves with the time since the navigation, in ms, once a condition holds
#: on the page: looked at before each frame. Playwright's own assertions look
#: again after as much as a second.
_WHEN = """([name, argument, limit]) => new Promise((resolve, reject) => {
  const rows = (label) => [...document.querySelectorAll('[role=region]')]
    .filter((one) => one.getAttribute('aria-label') === label)
    .flatMap((one) => [...one.querySelectorAll('tbody tr')]);
  const titled = (row, words) => [...row.querySelectorAll('[title]')]
    .some((one) => one.title === words);
  const tile = () => document.querySelector('.vs-tile__value');
  const met = {
    rows: (label) => rows(label).length > 0,
    // The filter of a list that is not all there finds another row, or none.
    row: ([label, words]) => {
      const found = rows(label);
      return found.length === 1 && (
        found[0].textContent.includes(words) || titled(found[0], words));
    },
    button: (name) => [...document.querySelectorAll('button')].some(
      (one) => one.textContent.trim() === name && !one.disabled),
    tiles: () => tile() !== null,
    whole: (pattern) =>
      tile() !== null && new RegExp(pattern).test(tile().textContent) &&
      document.querySelector('.vs-loading') === null,
  }[name];
  const look = () => {
    if (met(argument)) {
      resolve(performance.now());
    } else if (performance.now() > limit) {
      reject(new Error(name + ' ' + argument + ': not within the limit'));
    } else {
      requestAnimationFrame(look);
    }
  };
  look();
})"""

#: Files of the page, and requests to the API: since the navigation.
_TRANSFERRED = """() => {
  const found = performance.getEntriesByType('resource');
  const sum = (rows) => rows.reduce((all, one) => all + one.transferSize, 0);
  const ours = (one) => new URL(one.name).pathname.startsWith('/ui/assets/');
  return {
    assets: sum(found.filter(ours)),
    requests: found.filter((one) => !ours(one)).length,
    answers: sum(found.filter((one) => !ours(one))),
  };
}"""


class Seen(ty.NamedTuple):
    """One view that was opened.

    :param shown_s: until it had rows, or figures.
    :param interactive_s: until it answered its user.
    :param assets_kb: transferred of the page's own files.
    :param requests: sent to the API until then.
    :param answers_kb: transferred of their answers.
    """

    shown_s: float
    interactive_s: float
    assets_kb: float
    requests: int
    answers_kb: float


class Views(abc.ABC):
    """Opens each view once, in a profile of its own.

    :param hosts: how many hosts the fleet has.
    :param instances: how many instances each host has.
    """

    def __init__(self, hosts: int, instances: int) -> None:
        self._hosts = hosts
        self._instances = instances

    @abc.abstractmethod
    def tab(
        self, path: str, **options: ty.Any
    ) -> contextlib.AbstractContextManager[browser.Tab]:
        """Open a view in a profile of its own."""

    def overview(self) -> Seen:
        """Open the overview."""
        return self._figures('', '^%s$' % _grouped(self._hosts))

    def hosts(self) -> Seen:
        """Open the hosts, and find the last of them."""
        return self._filter('/hosts', 'Hosts', fleet.host_name(self._hosts))

    def reservations(self) -> Seen:
        """Open the reservations, and find the last: they come by UUID."""
        return self._filter(
            '/reservations',
            'Reservations',
            max(
                fleet.instance_uuid(host, number)
                for host in range(1, self._hosts + 1)
                for number in range(1, self._instances + 1)
            ),
        )

    def instances(self) -> Seen:
        """Open the view of a host, and find one of its instances."""
        host = fleet.host_name(2)
        return self._filter(
            '/hosts/' + host,
            'Instances of ' + host,
            fleet.instance_uuid(2, self._instances),
        )

    def instance(self) -> Seen:
        """Open the view of an instance."""
        return self._figures('/instances/' + fleet.instance_uuid(2, 1), '.')

    def balloons(self) -> Seen:
        """Open the balloons, and find one of them."""
        return self._filter('/balloons', 'Balloons', fleet.instance_uuid(1, 1))

    def events(self) -> Seen:
        """Open the events, and find one of them."""
        return self._filter('/events', 'Events', 'vsched.drift.repaired')

    def jobs(self) -> Seen:
        """Open the jobs, and find one of them."""
        return self._filter(
            '/jobs', 'Jobs', fleet.host_name(measurements.WITHDRAWN)
        )

    def evidence(self) -> Seen:
        """Open the evidence, and find the last host's certificates."""
        return self._filter(
            '/evidence', 'Error certificates', fleet.host_name(self._hosts)
        )

    def whatif(self) -> Seen:
        """Open what-if, send its form, and find the last host."""
        label = 'Evaluated hosts'
        with self.tab('/whatif') as tab:
            shown_s = _when_s(tab, 'button', 'Evaluate')
            tab.page.get_by_role('button', name='Evaluate', exact=True).click()
            _when_s(tab, 'rows', label)
            return _find(tab, shown_s, label, fleet.host_name(self._hosts))

    def _filter(self, path: str, label: str, words: str) -> Seen:
        with self.tab(path) as tab:
            # A view may have further tables.
            shown_s = _when_s(tab, 'rows', label)
            return _find(tab, shown_s, label, words)

    def _figures(self, path: str, pattern: str) -> Seen:
        """Open a view with figures.

        :param pattern: the first of them, once all is there.
        """
        with self.tab(path) as tab:
            shown_s = _when_s(tab, 'tiles')
            return _seen(tab, shown_s, _when_s(tab, 'whole', pattern))


def _grouped(number: int) -> str:
    """Return a pattern of a number as the page writes it."""
    return r'\D?'.join('{:,}'.format(number).split(','))


def _when_s(
    tab: browser.Tab, condition: str, argument: ty.Any = None
) -> float:
    """Return how long after the navigation a condition came to hold."""
    limit_ms = 1000 * browser.PATIENCE_S
    return (
        float(tab.page.evaluate(_WHEN, [condition, argument, limit_ms])) / 1000
    )


def _find(tab: browser.Tab, shown_s: float, label: str, words: str) -> Seen:
    """Filter a table that has rows until the one with these words is left."""
    tab.page.get_by_label('Filter ' + label, exact=True).fill(words)
    return _seen(tab, shown_s, _when_s(tab, 'row', [label, words]))


def _seen(tab: browser.Tab, shown_s: float, interactive_s: float) -> Seen:
    transferred = tab.page.evaluate(_TRANSFERRED)
    return Seen(
        shown_s,
        interactive_s,
        transferred['assets'] / 1000,
        transferred['requests'],
        transferred['answers'] / 1000,
    )
