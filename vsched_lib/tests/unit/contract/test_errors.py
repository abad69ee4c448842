# SPDX-License-Identifier: Apache-2.0

"""Codes are a public interface: they are added to, never changed."""

import json
import re

from oslotest import base

from vsched_lib.contract import errors


class CodeTestCase(base.BaseTestCase):
    def test_strings_are_in_our_namespace_and_unique(self):
        values = [code.value for code in errors.Code]
        self.assertEqual(len(values), len(set(values)))
        for value in values:
            self.assertTrue(
                re.fullmatch(r'vsched(\.[a-z_]+){1,2}', value), value
            )

    def test_no_name_hides_another(self):
        self.assertEqual(len(errors.Code.__members__), len(list(errors.Code)))

    def test_published_strings(self):
        # Clients compare these. A line may be added, none changed.
        published = {
            'BAD_REQUEST': 'vsched.request.invalid',
            'UNAUTHENTICATED': 'vsched.request.unauthenticated',
            'FORBIDDEN': 'vsched.request.forbidden',
            'NOT_FOUND': 'vsched.request.not_found',
            'METHOD_NOT_ALLOWED': 'vsched.request.method_not_allowed',
            'NOT_ACCEPTABLE': 'vsched.request.version_not_supported',
            'UNSUPPORTED_MEDIA_TYPE': 'vsched.request.unsupported_media_type',
            'TOO_LARGE': 'vsched.request.too_large',
            'INTERNAL': 'vsched.internal_error',
            'DATABASE_UNAVAILABLE': 'vsched.database.unavailable',
            'HOST_NOT_FOUND': 'vsched.host.not_found',
            'HOST_KEY_NOT_FOUND': 'vsched.host.key_not_found',
            'BUS_UNAUTHENTICATED': 'vsched.bus.unauthenticated',
            'INSTANCE_NOT_FOUND': 'vsched.instance.not_found',
            'RESERVATION_NOT_FOUND': 'vsched.reservation.not_found',
            'RESERVATION_EXISTS': 'vsched.reservation.exists',
            'OVERRIDE_NOT_FOUND': 'vsched.reservation.override_not_found',
            'RESERVATION_CHANGING': 'vsched.reservation.changing',
            'REPORT_REJECTED': 'vsched.report.rejected',
            'HOST_IMPLAUSIBLE': 'vsched.host.implausible',
            'JOURNAL_NEW': 'vsched.journal.new',
            'JOURNAL_REPLACED': 'vsched.journal.replaced',
            'CERTIFICATES_WITHDRAWN': 'vsched.certificates.withdrawn',
            'CERTIFICATES_GRANTED': 'vsched.certificates.granted',
            'EXTRA_SPECS_INVALID': 'vsched.extra_specs.invalid',
            'RESERVATION_INVALID': 'vsched.reservation.invalid',
            'DOES_NOT_FIT': 'vsched.reservation.does_not_fit',
            'KERNEL_REFUSED': 'vsched.reservation.kernel_refused',
            'BACKEND_UNAVAILABLE': 'vsched.backend.unavailable',
            'PINNING_UNSUPPORTED': 'vsched.backend.pinning_unsupported',
            'THREADS_GONE': 'vsched.instance.threads_gone',
            'RESERVATION_APPLIED': 'vsched.reservation.applied',
            'RESERVATION_RELEASED': 'vsched.reservation.released',
            'RESERVATION_DEGRADED': 'vsched.reservation.degraded',
            'DRIFT_REPAIRED': 'vsched.drift.repaired',
            'BANDWIDTH_LEAKED': 'vsched.bandwidth.leaked',
            'CAPACITY_CHANGED': 'vsched.capacity.changed',
            'REPORTS_DROPPED': 'vsched.reports.dropped',
            'JOURNAL_REBUILT': 'vsched.journal.rebuilt',
            'JOURNAL_RECORD_UNREADABLE': 'vsched.journal.record_unreadable',
            'JOURNAL_STORAGE_LOST': 'vsched.journal.storage_lost',
            'JOURNAL_STORAGE_BACK': 'vsched.journal.storage_back',
            'AGENT_STARTED': 'vsched.agent.started',
            'HYPERVISOR_LOST': 'vsched.hypervisor.lost',
            'HYPERVISOR_BACK': 'vsched.hypervisor.back',
        }
        for name, value in published.items():
            self.assertEqual(value, errors.Code[name].value)


class TreeTestCase(base.BaseTestCase):
    def test_every_class_has_a_code(self):
        for kind in (errors.VschedError, *errors.VschedError.__subclasses__()):
            self.assertIsInstance(kind.code, errors.Code)

    def test_class_code_and_own_code(self):
        self.assertEqual(errors.Code.DOES_NOT_FIT, errors.Refused('full').code)
        own = errors.Refused('busy', errors.Code.KERNEL_REFUSED, {'a': 1})
        self.assertEqual(errors.Code.KERNEL_REFUSED, own.code)
        self.assertEqual(errors.Code.DOES_NOT_FIT, errors.Refused.code)
        self.assertEqual(('busy', {'a': 1}), (own.detail, own.figures))

    def test_figures_are_a_copy(self):
        figures = {'needed_mcpu': 1801}
        error = errors.Refused('full', figures=figures)
        figures.clear()
        self.assertEqual('{"needed_mcpu": 1801}', json.dumps(error.figures))

    def test_extra_specs_name_every_problem(self):
        error = errors.InvalidExtraSpecs(
            [('vsched:a', 'is wrong'), ('vsched:b', 'is worse')]
        )
        self.assertEqual(
            'vsched:a: is wrong; vsched:b: is worse', error.detail
        )
        self.assertEqual(error.detail, str(error))
        self.assertEqual(2, len(error.problems))
