# SPDX-License-Identifier: Apache-2.0

"""Options are registered where they are asked for, and nowhere else."""

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_db import options
from oslotest import base

import vsched_api.conf


class TestConf(base.BaseTestCase):
    """Every group."""

    def test_listed_is_what_is_registered(self):
        conf = cfg.ConfigOpts()
        vsched_api.conf.register_opts(conf)
        # Again, as two parts of one process do.
        vsched_api.conf.register_opts(conf)
        conf([], project='vsched-test', default_config_files=[])
        # Which of these there are depends on auth_type.
        plugins = {
            option.dest
            for name in ('password', 'admin_token')
            for option in loading.get_auth_plugin_conf_options(name)
        }
        for group, found in vsched_api.conf.list_opts():
            away = plugins if group.name in ('nova', 'placement') else ()
            for option in found:
                if option.dest in away:
                    continue
                self.assertIn(option.dest, conf[group.name])
                self.assertTrue(option.help)

    def test_nothing_is_global(self):
        vsched_api.conf.register_opts(cfg.ConfigOpts())
        by_name = {option.name: option for option in options.database_opts}
        self.assertEqual(10, by_name['max_retries'].default)

    def test_each_has_values_of_its_own(self):
        confs = [cfg.ConfigOpts() for _ in range(2)]
        for conf in confs:
            vsched_api.conf.register_opts(conf)
            conf([], project='vsched-test', default_config_files=[])
        for group, option, value in (
            ('database', 'connection', 'sqlite:///x'),
            ('api', 'auth_strategy', 'noauth'),
            ('collector', 'keep_profiles', 7),
        ):
            confs[0].set_override(option, value, group)
            self.assertNotEqual(value, confs[1][group][option])

    def test_a_request_does_not_wait_for_a_database(self):
        conf = cfg.ConfigOpts()
        vsched_api.conf.register_opts(conf)
        conf([], project='vsched-test', default_config_files=[])
        self.assertEqual(0, conf.database.max_retries)
        self.assertEqual(5, conf.database.pool_timeout)
