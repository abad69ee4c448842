# SPDX-License-Identifier: Apache-2.0

"""Options of three parts in one configuration."""

from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_api import conf as api_conf
from vsched_standalone import conf


class TestListedOptions(base.BaseTestCase):
    def test_each_group_and_option_is_listed_once(self):
        listed = [
            (group.name, option.name)
            for group, options in conf.list_opts()
            for option in options
        ]
        self.assertEqual(sorted(set(listed)), sorted(listed))
        groups = [group.name for group, _ in conf.list_opts()]
        self.assertEqual(sorted(set(groups)), sorted(groups))

    def test_no_part_lacks_an_option(self):
        listed = {
            (group.name, option.name)
            for group, options in conf.list_opts()
            for option in options
        }
        for part in (agent_conf, api_conf):
            for group, options in part.list_opts():
                for option in options:
                    self.assertIn((group.name, option.name), listed)
        self.assertIn(('standalone', 'bind_port'), listed)
