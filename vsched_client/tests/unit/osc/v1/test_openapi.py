# SPDX-License-Identifier: Apache-2.0

"""Every filter and every order of the API's lists has an option."""

import re
import types
import typing as ty

from oslotest import base

from vsched_api.rest import openapi_document
from vsched_client.osc.v1 import hosts as host_commands
from vsched_client.osc.v1 import reservations as reservation_commands
from vsched_client.osc.v1 import usage as usage_commands
from vsched_client.tests import entry_points
from vsched_client.v1 import hosts
from vsched_client.v1 import instances
from vsched_client.v1 import reservations
from vsched_client.v1 import usage

#: By path: the command that sends a GET request for it with a query.
COMMANDS = types.MappingProxyType(
    {
        '/v1/balloons': 'cpu balloon list',
        '/v1/balloons/history': 'cpu balloon history',
        '/v1/events': 'cpu event list',
        '/v1/hosts': 'cpu host list',
        '/v1/hosts/{name}/profiles/error': 'cpu profile show',
        '/v1/hosts/{name}/profiles/error/versions': 'cpu profile list',
        '/v1/hosts/{name}/profiles/overhead': 'cpu profile show',
        '/v1/hosts/{name}/profiles/overhead/versions': 'cpu profile list',
        '/v1/jobs': 'cpu job list',
        '/v1/reservations': 'cpu reservation list',
        '/v1/usage': 'cpu usage show',
        '/v1/usage/totals': 'cpu usage top',
    }
)

#: Paths without a command, and why.
WITHOUT_COMMAND = types.MappingProxyType(
    {
        '/v1/instances': 'Nova has them all: "openstack server list"',
        '/v1/snapshot': 'for the filters of nova-scheduler',
    }
)

#: Options whose names are not those of the API's parameters.
OPTIONS = types.MappingProxyType(
    {
        'flavor_name': '--flavor',
        'instance_uuid': '--instance',
        # openstack itself has --os-project-id, of the user.
        'project_id': '--server-project',
        # openstack itself has --version.
        'version': '--profile-version',
        'window_us': '--window',
        # The direction is a part of its value.
        'sort_key': '--sort',
        'sort_dir': '--sort',
    }
)

#: Parameters that no option has, and why; by path, '' for every path.
WITHOUT_OPTION = types.MappingProxyType(
    {
        ('', 'marker'): 'the library reads page after page',
        ('/v1/usage', 'instance_uuid'): 'the argument has it',
        ('/v1/usage', 'sort_dir'): 'always the newest intervals, in their '
        'order',
        ('/v1/usage/totals', 'instance_uuid'): 'of those that are known '
        '"cpu usage show" has more',
    }
)


def _options(command: str) -> dict[str, ty.Any]:
    """Return the options of a command, with their help."""
    parser = entry_points.load(command)(None, None).get_parser(command)
    return {
        option: action
        for action in parser._actions
        for option in action.option_strings
    }


class OptionsTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.queries = {
            path: {
                one['name']: one['schema']
                for one in operations['get']['parameters']
                if one.get('in') == 'query'
            }
            for path, operations in openapi_document.document()[
                'paths'
            ].items()
            if 'get' in operations
        }

    def offered(self):
        """Yield path, parameter, its schema and the command's option."""
        for path, command in COMMANDS.items():
            known = _options(command)
            for name, schema in self.queries[path].items():
                option = OPTIONS.get(name, '--' + name.replace('_', '-'))
                yield path, name, schema, known.get(option)

    def test_each_path_with_a_query_has_a_command(self):
        self.assertEqual(
            {path for path, query in self.queries.items() if query},
            {*COMMANDS, *WITHOUT_COMMAND},
        )

    def test_each_parameter_has_an_option(self):
        missing = {
            (path, name)
            for path, name, _, option in self.offered()
            if option is None
        }
        exceptions = {
            (path, name)
            for path, name, _, _ in self.offered()
            if ('', name) in WITHOUT_OPTION or (path, name) in WITHOUT_OPTION
        }
        self.assertEqual(exceptions, missing)

    def test_exceptions_are_of_parameters(self):
        offered = {(path, name) for path, name, _, _ in self.offered()}
        names = {name for _, name in offered}
        for path, name in WITHOUT_OPTION:
            if path:
                self.assertIn((path, name), offered)
            else:
                self.assertIn(name, names)
        self.assertEqual(set(), set(OPTIONS) - names)

    def test_what_may_be_repeated(self):
        for path, name, schema, option in self.offered():
            if option is not None:
                self.assertEqual(
                    schema['type'] == 'array',
                    isinstance(option.default, list),
                    (path, name),
                )

    def test_the_words_of_a_parameter_are_those_of_its_option(self):
        for path, name, schema, option in self.offered():
            words = schema.get('enum') or schema.get('items', {}).get('enum')
            if option is not None and words:
                found = {
                    *re.findall('[a-z0-9_-]+', option.help),
                    *(option.choices or ()),
                }
                self.assertEqual(set(), set(words) - found, (path, name))

    def test_keys(self):
        for path, own, library in (
            ('/v1/hosts', host_commands, hosts),
            ('/v1/reservations', reservation_commands, reservations),
        ):
            keys = tuple(self.queries[path]['sort_key']['enum'])
            self.assertEqual(keys, own.SORT_KEYS)
            self.assertEqual(keys, library.SORT_KEYS)
        # Without a command.
        self.assertEqual(
            tuple(self.queries['/v1/instances']['sort_key']['enum']),
            instances.SORT_KEYS,
        )

    def test_longest_window(self):
        longest = self.queries['/v1/usage/totals']['window_us']['maximum']
        self.assertEqual(longest, usage_commands.MAX_WINDOW_US)
        self.assertEqual(longest, usage.MAX_WINDOW_S * 1_000_000)
