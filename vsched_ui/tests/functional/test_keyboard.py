# SPDX-License-Identifier: Apache-2.0

"""The page without a mouse."""

import re

import ddt

from vsched_ui.tests import fleet
from vsched_ui.tests import page_case
from vsched_ui.tests import views

FORMED = fleet.instance_uuid(1, 4)
#: More controls than any view has.
MOST = 300
#: How often all controls are visited: what some parts of a view depend on is
#: read without a sign of it, and replaces controls meanwhile.
ROUNDS = 5

#: Records which elements get the focus, and whether they are shown otherwise
#: while they have it. Without transitions a style has its value at once.
_RECORD = """() => {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('*, *::before, *::after { transition: none !important }');
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const shown = (element) => {
    const found = [];
    for (let one = element, up = 0; one !== null && up < 3; up += 1) {
      for (const part of [null, '::before', '::after']) {
        const style = getComputedStyle(one, part);
        found.push(
          style.outlineStyle, style.outlineWidth, style.boxShadow,
          style.borderTopWidth, style.borderTopColor,
          style.borderBottomWidth, style.borderBottomColor,
          style.backgroundColor, style.textDecorationLine);
      }
      one = one.parentElement;
    }
    return found.join(' ');
  };
  const visits = window.visits = new Map();
  let last = null;
  document.addEventListener('focusin', ({ target }) => {
    if (last !== null && last.element !== target) {
      visits.set(last.element, last.focused !== shown(last.element));
    }
    last = { element: target, focused: shown(target) };
    visits.set(target, visits.get(target) ?? false);
  });
}"""
#: How many controls there are, and as text those that did not get the focus
#: and those that do not show it.
_CONTROLS = """() => {
  const controls = [...document.querySelectorAll(
    'a[href], button, input, select, textarea, summary, [tabindex="0"], ' +
    '[role=button], [role=link], [role=tab], [role=checkbox]'
  )].filter((one) =>
    !one.disabled && one.checkVisibility({ visibilityProperty: true }));
  const visits = window.visits;
  const named = (one) => one.outerHTML.slice(0, 160);
  return {
    count: controls.length,
    unreached: controls.filter((one) => !visits?.has(one)).map(named),
    invisible: controls.filter((one) => visits?.get(one) === false).map(named),
  };
}"""
_FOCUSED = 'one => one === document.activeElement'
_WITHIN = 'one => one.contains(document.activeElement)'


@ddt.ddt
class TestKeyboard(page_case.PageCase):
    def open(self, path):
        """Open a view that stays as it is."""
        tab = self.chromium.tab()
        self.addCleanup(tab.close)
        tab.stop_polls()
        self.go(tab, path)
        return tab

    def reach(self, tab, control):
        """Press Tab until a control has the focus."""
        control.wait_for()
        for _ in range(MOST):
            if control.evaluate(_FOCUSED):
                return
            tab.page.keyboard.press('Tab')
        self.fail('Tab does not reach it: %s' % control)

    def button_named(self, tab, name):
        return tab.page.get_by_role('button', name=name, exact=True)

    @ddt.data(*views.PATHS)
    def test_each_control_has_a_visible_focus(self, path):
        heading, text = views.PATHS[path]
        tab = self.open(path)
        self.see_heading(tab, heading)
        self.see(tab, text, exact=False)
        self.wait_for_data(tab)
        tab.page.evaluate(_RECORD)
        found = tab.page.evaluate(_CONTROLS)
        for _ in range(ROUNDS):
            # All of them, and those that only scroll; then the first again.
            for _ in range(found['count'] + 10):
                tab.page.keyboard.press('Tab')
            found = tab.page.evaluate(_CONTROLS)
            if not found['unreached']:
                break
        # The menu, and something of the view.
        self.assertGreater(found['count'], 12)
        self.assertEqual([], found['unreached'])
        self.assertEqual([], found['invisible'])

    def test_search_sort_and_open(self):
        tab = self.open('/hosts')
        self.reach(tab, tab.page.get_by_label('Filter Hosts'))
        tab.page.keyboard.type('node-003')
        first = tab.page.locator('tbody tr td:first-child')
        numbers = range(30, 40)
        self.chromium.expect(first).to_have_text(
            [fleet.host_name(number) for number in numbers]
        )
        self.reach(tab, self.button_named(tab, 'Host'))
        tab.page.keyboard.press('Enter')
        self.chromium.expect(first).to_have_text(
            [fleet.host_name(number) for number in reversed(numbers)]
        )
        self.chromium.expect(
            tab.page.locator('th[aria-sort=descending]')
        ).to_have_text(re.compile('^Host'))
        tab.page.keyboard.press('Space')
        self.chromium.expect(first.first).to_have_text(fleet.host_name(30))
        name = fleet.host_name(31)
        self.reach(tab, tab.page.get_by_role('link', name=name))
        tab.page.keyboard.press('Enter')
        self.see_heading(tab, name)
        self.reach(tab, tab.page.get_by_role('tab', name='Jobs'))
        tab.page.keyboard.press('Enter')
        self.see(tab, 'No jobs')
        self.check(tab)

    def test_the_form_is_left_by_escape(self):
        tab = self.open('/instances/' + FORMED)
        sent = []
        tab.page.on(
            'request',
            lambda request: sent.append((request.method, request.url)),
        )
        opener = self.button_named(tab, 'Change reservation')
        self.reach(tab, opener)
        tab.page.keyboard.press('Enter')
        form = tab.page.get_by_role('dialog')
        form.wait_for()
        share = tab.page.get_by_label('Share of a CPU for each vCPU (%)')
        self.reach(tab, share)
        tab.page.keyboard.press('Control+A')
        tab.page.keyboard.type('33')
        self.see(tab, '6.6 ms every 20 ms', exact=False)
        self.see(tab, 'It fits on', exact=False)
        # The focus stays within it, and comes around.
        for _ in range(20):
            tab.page.keyboard.press('Tab')
            self.assertTrue(form.evaluate(_WITHIN))
        self.reach(tab, self.button_named(tab, 'Leave as it is'))
        self.reach(tab, share)
        tab.page.keyboard.press('Escape')
        form.wait_for(state='hidden')
        self.chromium.expect(opener).to_be_focused()
        self.assertEqual(
            {'evaluations'},
            {
                url.rpartition('/')[2]
                for method, url in sent
                if method != 'GET'
            },
        )
        found = self.request('GET', '/v1/reservations/' + FORMED).json()
        self.assertEqual('metadata', found['reservation']['source'])
        self.check(tab)
