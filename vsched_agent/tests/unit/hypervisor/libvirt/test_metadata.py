# SPDX-License-Identifier: Apache-2.0

"""Extra specs in metadata, as Nova and as operators write them."""

from xml.etree import ElementTree
from xml.sax import saxutils

import ddt
from oslotest import base as test_base

from vsched_agent.hypervisor.libvirt import metadata

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
        self.assertEqual(metadata.Metadata(), said)

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
