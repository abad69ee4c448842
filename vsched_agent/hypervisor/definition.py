# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What the live definition (XML) of a domain says that vsched needs."""

from collections.abc import Mapping
import dataclasses
import typing as ty
from xml.etree import ElementTree

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import cpu_list
from vsched_agent.hypervisor import metadata

#: Longest definition read, in characters: hundreds of devices fit in.
MAX_CHARS = 8 * 1024 * 1024


class UnreadableDefinition(ValueError):
    """A text that is not the definition of a domain."""


@dataclasses.dataclass(frozen=True, slots=True)
class Definition:
    """The part of a domain's definition that vsched reads.

    :param metadata: its extra specs.
    :param default_cpus: host CPUs of the vCPUs that ``vcpu_cpus`` leaves
        out; None for all.
    :param vcpu_cpus: host CPUs by the number of the vCPU.
    :param interfaces: network devices with an end on the host.
    :param disks: names of its disks.
    """

    metadata: metadata.Metadata
    default_cpus: frozenset[int] | None = None
    vcpu_cpus: Mapping[int, frozenset[int]] = dataclasses.field(
        default_factory=dict)
    interfaces: tuple[base.Interface, ...] = ()
    disks: tuple[str, ...] = ()

    def pinned_cpus(self, index: int,
                    online: frozenset[int]) -> frozenset[int] | None:
        """The host CPUs that a vCPU is confined to.

        :param index: number of the vCPU.
        :param online: the CPUs that this host has.
        :returns: None when it may use every CPU that is online.
        """
        cpus = self.vcpu_cpus.get(index, self.default_cpus)
        return None if cpus is None or cpus >= online else cpus


class _NoDoctype(ElementTree.TreeBuilder):
    """Refuses documents that define entities.

    libvirt never writes a document type. One could make a few lines expand
    to gigabytes or name files of this host.
    """

    def doctype(self, name: str, *others: ty.Any) -> None:
        raise UnreadableDefinition(
            'a document type (%s) is not accepted' % ascii(name)[:64])


def parse_xml(text: str) -> ElementTree.Element:
    """Read an XML document of bounded size without a document type.

    :raises UnreadableDefinition: saying why it is not one.
    """
    if len(text) > MAX_CHARS:
        raise UnreadableDefinition('%d characters, more than %d' % (
            len(text), MAX_CHARS))
    parser = ElementTree.XMLParser(target=_NoDoctype())
    try:
        parser.feed(text)
        root: ElementTree.Element = parser.close()
    except ElementTree.ParseError as error:
        raise UnreadableDefinition('not well-formed: %s' % error) from None
    return root


def parse(text: str) -> Definition:
    """Read a live definition.

    A part that can not be understood becomes the metadata's problem and
    never stops the domain from being seen.

    :param text: what libvirt's XMLDesc returned.
    """
    try:
        root = parse_xml(text)
        if root.tag != 'domain':
            raise UnreadableDefinition('%s is not a domain' % ascii(
                root.tag)[:64])
    except UnreadableDefinition as error:
        return Definition(metadata.Metadata(
            problem='the definition can not be read: %s' % error))
    said = metadata.read(root.find('metadata'))
    try:
        default, by_vcpu = _pinning(root)
    except ValueError as error:
        # A vCPU whose confinement is unknown must not be taken for one
        # that may run anywhere: no reservation then.
        said = metadata.Metadata(
            {}, 'the pinning can not be read: %s' % error)
        default, by_vcpu = None, {}
    return Definition(said, default, by_vcpu, _interfaces(root),
                      _disks(root))


def hotpluggable(text: str) -> frozenset[int]:
    """The vCPUs that a live definition says can be plugged and unplugged.

    :param text: what libvirt's XMLDesc returned.
    :raises UnreadableDefinition: when it can not be read.
    """
    try:
        return frozenset(
            int(vcpu.get('id', '')) for vcpu in parse_xml(text).iterfind(
                'vcpus/vcpu') if vcpu.get('hotpluggable') == 'yes')
    except ValueError as error:
        raise UnreadableDefinition(str(error)) from None


def _pinning(root: ElementTree.Element) -> tuple[
        frozenset[int] | None, dict[int, frozenset[int]]]:
    vcpu = root.find('vcpu')
    text = vcpu.get('cpuset') if vcpu is not None else None
    default = cpu_list.parse(text) if text else None
    by_vcpu = {}
    for pin in root.iterfind('cputune/vcpupin'):
        by_vcpu[int(pin.get('vcpu', ''))] = cpu_list.parse(
            pin.get('cpuset', ''))
    return default, by_vcpu


def _interfaces(root: ElementTree.Element) -> tuple[base.Interface, ...]:
    # A device of the host that is given to the guest has no end here.
    found = []
    for interface in root.iterfind('devices/interface'):
        target = interface.find('target')
        device = target.get('dev') if target is not None else None
        if device:
            found.append(base.Interface(
                device, interface.get('type') == 'direct'))
    return tuple(found)


def _disks(root: ElementTree.Element) -> tuple[str, ...]:
    return tuple(target.get('dev', '') for target in root.iterfind(
        'devices/disk/target'))
