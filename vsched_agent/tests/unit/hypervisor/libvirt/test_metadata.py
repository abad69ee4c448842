# SPDX-License-Identifier: Apache-2.0

"""Metadata of domains, as Nova and as operators write it."""

from xml.etree import ElementTree
from xml.sax import saxutils

import ddt
from oslotest import base as test_base

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import metadata
from vsched_lib.contract import messages

# What Nova 34 makes of a flavor with two extra specs.
NOVA = """
<nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/%s">
  <nova:package version="34.0.0"/>
  <nova:name>an instance</nova:name>
  <nova:creationTime>2026-01-02 03:04:05</nova:creationTime>
  <nova:flavor name="m1" id="7f7c0c4c-6f2b-4f0c-8a51-3a55f1a6c7a1">
    <nova:memory>96</nova:memory>
    <nova:vcpus>1</nova:vcpus>
    <nova:extraSpecs>%s</nova:extraSpecs>
  </nova:flavor>
  <nova:owner>
    <nova:user uuid="b3c7a1d05e8f4b2c9d6e0f1a2b3c4d5e">alice</nova:user>
    <nova:project uuid="8f3c1d0e9b7a4c5d8e6f0a1b2c3d4e5f">web</nova:project>
  </nova:owner>
  <nova:image uuid="70ab645f-6ffc-406a-b3d2-5007a0c01b82">
    <nova:properties>
      <nova:property name="vsched:cpu_runtime_us">1</nova:property>
    </nova:properties>
  </nova:image>
</nova:instance>"""
PLAIN = (
    '<vsched:reservation xmlns:vsched="urn:vsched:reservation:1">%s'
    '</vsched:reservation>'
)
SERVER = base.Server('an instance', '8f3c1d0e9b7a4c5d8e6f0a1b2c3d4e5f', 'm1')
RUNTIME = 'vsched:cpu_runtime_us'


def nova(specs, version='1.1'):
    return NOVA % (
        version,
        ''.join(
            '<nova:extraSpec name=%s>%s</nova:extraSpec>'
            % (saxutils.quoteattr(name), saxutils.escape(text))
            for name, text in specs
        ),
    )


def plain(specs):
    return PLAIN % ''.join(
        '<vsched:extra_spec name=%s>%s</vsched:extra_spec>'
        % (saxutils.quoteattr(name), saxutils.escape(text))
        for name, text in specs
    )


def read(*parts):
    return metadata.read(
        ElementTree.fromstring('<metadata>%s</metadata>' % ''.join(parts))
    )


@ddt.ddt
class ReadTest(test_base.BaseTestCase):
    def test_none(self):
        self.assertEqual(metadata.Metadata(), metadata.read(None))

    def test_empty(self):
        self.assertEqual(metadata.Metadata(), read())

    @ddt.data('1.0', '1.1', '1.2')
    def test_nova(self, version):
        said = read(
            nova([(RUNTIME, '12000'), ('hw:cpu_policy', 'shared')], version)
        )
        self.assertEqual(
            {RUNTIME: '12000', 'hw:cpu_policy': 'shared'}, said.extra_specs
        )
        self.assertIsNone(said.problem)

    @ddt.data('2.0', 'x', '1.1/other')
    def test_not_nova(self, version):
        self.assertEqual({}, read(nova([(RUNTIME, '1')], version)).extra_specs)

    def test_plain(self):
        self.assertEqual(
            {RUNTIME: '12000'}, read(plain([(RUNTIME, '12000')])).extra_specs
        )

    def test_nova_wins(self):
        said = read(
            plain([(RUNTIME, '1'), ('vsched:weight', '2')]),
            nova([(RUNTIME, '12000')]),
        )
        self.assertEqual({RUNTIME: '12000'}, said.extra_specs)

    def test_plain_counts_where_nova_is_silent(self):
        said = read(
            nova([('hw:cpu_policy', 'shared')]), plain([(RUNTIME, '12000')])
        )
        self.assertEqual('12000', said.extra_specs[RUNTIME])

    def test_strange_elements_are_passed_over(self):
        said = read(
            '<x xmlns="urn:other"><extraSpec name="vsched:a"/></x>', nova([])
        )
        self.assertEqual(metadata.Metadata(server=SERVER), said)

    def test_empty_value(self):
        self.assertEqual(
            {RUNTIME: ''}, read(plain([(RUNTIME, '')])).extra_specs
        )

    @ddt.data(
        ('<vsched:extra_spec>1</vsched:extra_spec>', 'without a name'),
        ('<vsched:extra_spec name="">1</vsched:extra_spec>', 'without a name'),
        ('<vsched:runtime>1</vsched:runtime>', 'only vsched:extra_spec'),
        ('<other/>', 'only vsched:extra_spec'),
        (
            '<vsched:extra_spec name="vsched:a"><b/></vsched:extra_spec>',
            'is not a text',
        ),
        (
            '<vsched:extra_spec name="vsched:a">%s</vsched:extra_spec>'
            % ('x' * 300),
            'is not a text',
        ),
        (
            '<vsched:extra_spec name="vsched:a">1</vsched:extra_spec>'
            '<vsched:extra_spec name="vsched:a">2</vsched:extra_spec>',
            'has both',
        ),
    )
    @ddt.unpack
    def test_problems(self, content, words):
        said = read(PLAIN % content)
        self.assertEqual({}, said.extra_specs)
        self.assertIn(words, said.problem)

    def test_a_problem_leaves_nothing_half_read(self):
        said = read(
            nova(
                [
                    (RUNTIME, '12000'),
                    ('hw:a', '1'),
                    ('vsched:' + 'x' * 300, '1'),
                ]
            )
        )
        self.assertNotIn(RUNTIME, said.extra_specs)
        self.assertLess(len(said.problem), 300)

    def test_long_foreign_specs_are_left_out(self):
        said = read(nova([(RUNTIME, '12000'), ('hw:a', 'x' * 300)]))
        self.assertEqual({RUNTIME: '12000'}, said.extra_specs)

    def test_too_many(self):
        said = read(
            plain(
                [
                    ('x:%d' % number, '1')
                    for number in range(metadata.MAX_SPECS + 1)
                ]
            )
        )
        self.assertIn('more than 1024', said.problem)

    def test_unicode_is_quoted(self):
        said = read(plain([('vsched:\u202e', '1'), ('vsched:\u202e', '2')]))
        self.assertTrue(said.problem.isascii())


@ddt.ddt
class ServerTest(test_base.BaseTestCase):
    """What Nova knows a domain as."""

    def server(self, content):
        return read(
            '<nova:instance xmlns:nova="%s">%s</nova:instance>'
            % (metadata.NOVA_NS, content)
        ).server

    def project(self, text):
        return self.server(
            '<nova:owner><nova:project uuid=%s/></nova:owner>'
            % saxutils.quoteattr(text)
        ).project_id

    def test_nova(self):
        self.assertEqual(SERVER, read(nova([])).server)

    def test_extra_specs_that_cannot_be_read(self):
        said = read(nova([('vsched:' + 'x' * 300, '1')]))
        self.assertIsNotNone(said.problem)
        self.assertEqual(SERVER, said.server)

    @ddt.data(
        '',
        '<nova:name/><nova:flavor/><nova:owner/>',
        '<nova:name>  </nova:name><nova:flavor name=" "/>'
        '<nova:owner><nova:project/></nova:owner>',
        '<name>a</name><flavor name="b"/>',
    )
    def test_what_nova_does_not_say(self, content):
        self.assertEqual(base.Server(), self.server(content))

    def test_without_nova(self):
        self.assertEqual(base.Server(), read(plain([])).server)

    def test_two_that_differ(self):
        self.assertEqual(base.Server(), read(nova([]), nova([])).server)

    def test_long_names_are_cut(self):
        found = self.server(
            '<nova:name>%s</nova:name><nova:flavor name="%s"/>'
            % ('x' * 300, 'y' * 300)
        )
        self.assertEqual(
            ('x' * 255, 'y' * 255), (found.name, found.flavor_name)
        )

    @ddt.data('8f3c1d0e9b7a4c5d', 'x' * 64)
    def test_projects(self, text):
        self.assertEqual(text, self.project(text))

    @ddt.data('', ' ', 'a b', 'x' * 65, 'a\n', '\u00e4')
    def test_projects_that_are_none(self, text):
        self.assertIsNone(self.project(text))

    @ddt.data('x', 'a b', '\u2603' * 300, 'x' * 65)
    def test_the_collector_takes_whatever_is_said(self, text):
        found = self.server(
            '<nova:name>%s</nova:name><nova:flavor name="%s"/>'
            '<nova:owner><nova:project uuid="%s"/></nova:owner>'
            % ((text,) * 3)
        )
        told = messages.InstanceInfo(
            '3a9d1c3e-5b1c-4c53-a2a4-6bb0a2e0a1a1',
            'one',
            1,
            None,
            found.name,
            found.project_id,
            found.flavor_name,
        )
        self.assertEqual(told, messages.InstanceInfo.from_dict(told.to_dict()))
