# SPDX-License-Identifier: Apache-2.0

"""Instances of several projects, and what each may read of them."""

from vsched_api.tests import base
from vsched_api.tests import populated
from vsched_api.tests import tokens
from vsched_lib.contract import messages

OWN = populated.PROMISED
FOREIGN = populated.REFUSED
HOMELESS = populated.PLAIN
ELSEWHERE = populated.ELSEWHERE
UNKNOWN = '99999999-9999-4999-8999-999999999999'
UUIDS = (OWN, FOREIGN, HOMELESS, ELSEWHERE)


class ProjectCase(tokens.TokenCase):
    """Instances of two projects, and of none, on two hosts."""

    def setUp(self):
        super().setUp()
        self.collected = self.collector()
        populated.fill(self.collected)
        self.collected.on_report(
            messages.Report(
                'node2', 2, base.NOW, usage=(base.sample(ELSEWHERE),)
            )
        )
        self.own = self.token('reader', project_id=populated.PROJECT)
        self.other = self.token('reader', project_id=populated.OTHER_PROJECT)
        self.admin = self.token('admin')
        self.batch = 2

    def get(self, path, headers=None, status=200):
        answer = self.http.get(path, headers=headers or self.own)
        self.assertEqual(status, answer.status_code, (path, answer.text))
        return answer

    def problem(self, path, headers=None, status=404):
        """Return code and detail of an error."""
        (found,) = self.get(path, headers, status).json['errors']
        return found['code'], found['detail']

    def report(self, host, *instances, **parts):
        """Let a host list instances: (UUID, project) each."""
        self.batch += 1
        self.collected.on_report(
            messages.Report(
                host,
                self.batch,
                base.NOW + self.batch,
                instances=tuple(
                    messages.InstanceInfo(
                        uuid, 'vm', 1, None, 'web-1', project, 'm1.small'
                    )
                    for uuid, project in instances
                ),
                **parts,
            )
        )

    def seen(self, headers=None):
        """Return the instances that each list has, by the noun."""
        return {
            noun: [
                one['instance_uuid']
                for one in self.get('/v1/' + noun, headers).json[noun]
            ]
            for noun in ('instances', 'reservations', 'balloons')
        }
