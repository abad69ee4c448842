# SPDX-License-Identifier: Apache-2.0

"""A project reads nothing of hosts and of other instances."""

import re

from vsched_api.tests import base
from vsched_api.tests import populated
from vsched_api.tests import projects
from vsched_lib.contract import errors
from vsched_lib.contract import messages

#: What nobody but operators may find in an answer.
SECRETS = (
    '"node1"',
    '"node2"',
    '"promised"',
    '"elsewhere"',
    'it waited',
    '3800',
    'deadline can not be used',
)
#: Random digits, which may happen to be those of a figure.
_REQUEST = re.compile('req-[0-9a-f-]{36}')


class TestSecrets(projects.ProjectCase):
    """What tells of hosts and of other instances."""

    def paths(self):
        for uuid in (projects.OWN, projects.ELSEWHERE, projects.FOREIGN):
            for noun in ('instances', 'reservations', 'balloons'):
                yield '/v1/' + noun
                yield '/v1/%s/%s' % (noun, uuid)
            for more in ('', '&resolution=minute', '&format=csv'):
                yield '/v1/usage?instance_uuid=%s%s' % (uuid, more)
                yield '/v1/usage?limit=1000' + more
            yield '/v1/usage/totals'
            yield '/v1/usage/totals?instance_uuid=' + uuid

    def test_no_answer_has_them(self):
        operators = ''
        for path in self.paths():
            for headers in (self.own, self.other):
                text = _REQUEST.sub(
                    '', self.http.get(path, headers=headers).text
                )
                for secret in SECRETS:
                    self.assertNotIn(secret, text, path)
            operators += self.http.get(path, headers=self.admin).text
        for secret in SECRETS:
            self.assertIn(secret, operators)

    def test_what_they_have_instead(self):
        found = self.get(
            '/v1/reservations/' + projects.FOREIGN, self.other
        ).json
        one = found['reservation']
        self.assertEqual(
            (None, None, None, {}),
            (one['host'], one['instance_name'], one['detail'], one['figures']),
        )
        # The code is enough to act on.
        self.assertEqual('vsched.reservation.does_not_fit', one['code'])
        self.assertEqual(populated.OTHER_PROJECT, one['project_id'])
        found = self.get('/v1/balloons/' + projects.FOREIGN, self.other).json
        one = found['balloon']
        self.assertEqual(
            (None, None, None, []),
            (one['host'], one['instance_name'], one['cause'], one['cpus']),
        )
        self.assertEqual(3, one['online_vcpus'])

    def test_details_of_parts(self):
        io = messages.IoReport(
            'charge', 1, code='vsched.io.refused', detail='beside vm-7'
        )
        self.report(
            base.HOST,
            (projects.OWN, populated.PROJECT),
            reservations=(base.reservation(projects.OWN, io=io),),
        )
        path = '/v1/reservations/' + projects.OWN
        for headers, expected in (
            (self.own, None),
            (self.admin, 'beside vm-7'),
        ):
            found = self.get(path, headers).json['reservation']['io']
            self.assertEqual(
                ('vsched.io.refused', expected),
                (found['code'], found['detail']),
            )

    def test_lists_are_not_sorted_or_filtered_by_them(self):
        for path in (
            '/v1/instances?host=node1',
            '/v1/instances?sort_key=host',
            '/v1/reservations?host=node1',
            '/v1/reservations?sort_key=host',
            '/v1/balloons?host=x',
            '/v1/usage?host=node1&instance_uuid=' + projects.OWN,
            '/v1/usage/totals?host=node1',
        ):
            code, detail = self.problem(path, status=403)
            self.assertEqual(errors.Code.FORBIDDEN, code)
            self.assertIn('vsched:instances:show_host', detail)
            self.get(path, self.admin)

    def test_who_set_an_override(self):
        answer = self.http.patch(
            '/v1/reservations/' + projects.OWN,
            json={'runtime_us': 6000},
            headers=self.admin,
        )
        self.assertEqual(202, answer.status_code)
        found = self.get('/v1/reservations/' + projects.OWN).json[
            'reservation'
        ]
        self.assertEqual(
            (6000, None), (found['runtime_us'], found['override'])
        )
