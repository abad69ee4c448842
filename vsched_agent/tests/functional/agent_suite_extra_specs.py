# SPDX-License-Identifier: Apache-2.0

"""Extra specs that say nothing enforceable, in a real guest's metadata."""

from vsched_agent.tests import bad_extra_specs
from vsched_lib.contract import errors
from vsched_lib.contract import messages

Code = errors.Code


class ExtraSpecSuite:
    """For a class with the guests ``promised`` and ``plain``."""

    def test_bad_sets_give_one_event_each_and_change_nothing(self):
        found = self.plain.found()
        self.addCleanup(self.plain.set_extra_specs, {})
        for specs in bad_extra_specs.SETS:
            with self.subTest(specs=specs):
                mark = self.collector.mark()
                self.plain.set_extra_specs(specs)
                event = self.agent.await_event(
                    Code.EXTRA_SPECS_INVALID, self.plain.uuid, mark
                )
                self.assertEqual(messages.Severity.ERROR, event.severity)
                self.assertIn('vsched:', event.detail)
                self.assertLess(len(event.detail), 1000)
                # The refusal of the former set may be reported once more.
                said = self.collector.await_news(
                    lambda mark=mark, event=event: (
                        (said := self.collector.said(self.plain.uuid, mark))
                        is not None
                        and said.state == messages.State.REFUSED
                        and said.detail in event.detail
                        and said
                    ),
                    'the refusal: %s' % event.detail,
                )
                self.assertIsNone(said.enforced_backend)
        self.agent.await_passes(1)
        self.assertEqual(
            [event], self.collector.vcpu_events(mark, self.plain.uuid)
        )
        self.assertEqual(found, self.plain.found())

    def test_a_bad_set_leaves_what_the_guest_had(self):
        self.addCleanup(self.plain.set_extra_specs, {})
        mark = self.collector.mark()
        self.plain.set_extra_specs({'cpu_runtime_us': 4_000})
        self.agent.await_said(
            self.plain.uuid, mark, state=messages.State.APPLIED
        )
        mark = self.collector.mark()
        self.plain.set_extra_specs({'cpu_runtime_us': 'much'})
        said = self.agent.await_said(
            self.plain.uuid, mark, state=messages.State.REFUSED
        )
        self.assertEqual(
            ('deadline', 4_000),
            (said.enforced_backend, said.enforced_runtime_us),
        )
        self.assertEqual([(4_000, 20_000)] * 2, self.plain.held())
