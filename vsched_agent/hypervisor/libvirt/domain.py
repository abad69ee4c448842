# SPDX-License-Identifier: Apache-2.0

"""Parse the live definition (XML) of a domain."""

from collections.abc import Mapping
import dataclasses
import typing as ty
from xml.etree import ElementTree

from vsched_agent.host import cpu_list
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import metadata

#: Longest definition read, in characters: enough for hundreds of devices.
MAX_CHARS = 8 * 1024 * 1024
#: For a quota without a period; libvirt's own default.
_DEFAULT_PERIOD_US = 100_000


class UnreadableDefinition(ValueError):
    """A text that is not the definition of a domain."""


@dataclasses.dataclass(frozen=True, slots=True)
class Definition:
    """The part of a domain's definition that vsched reads.

    :param metadata: its extra specs, and Nova's names of it.
    :param default_cpus: host CPUs of vCPUs that are not in ``vcpu_cpus``; None
        for all.
    :param vcpu_cpus: host CPUs by the number of the vCPU.
    :param interfaces: network devices with an end on the host.
    :param disks: names of its disks.
    :param vcpu_quota: quota and period of each vCPU, in us; None when none
        is set.
    """

    metadata: metadata.Metadata
    default_cpus: frozenset[int] | None = None
    vcpu_cpus: Mapping[int, frozenset[int]] = dataclasses.field(
        default_factory=dict
    )
    interfaces: tuple[base.Interface, ...] = ()
    disks: tuple[str, ...] = ()
    vcpu_quota: tuple[int, int] | None = None

    def pinned_cpus(
        self, index: int, online: frozenset[int]
    ) -> frozenset[int] | None:
        """Return the host CPUs that a vCPU is pinned to.

        :param index: number of the vCPU.
        :param online: the host's online CPUs.
        :returns: None when it may use every CPU that is online.
        """
        cpus = self.vcpu_cpus.get(index, self.default_cpus)
        return None if cpus is None or cpus >= online else cpus


class _NoDoctype(ElementTree.TreeBuilder):
    """Refuses documents that define entities.

    libvirt never writes a document type. Entities could expand a few lines to
    gigabytes or refer to files of this host.
    """

    def doctype(self, name: str, *others: ty.Any) -> None:
        raise UnreadableDefinition(
            'a document type (%s) is not accepted' % ascii(name)[:64]
        )


def parse_xml(text: str) -> ElementTree.Element:
    """Read an XML document of bounded size without a document type.

    :raises UnreadableDefinition: with the reason.
    """
    if len(text) > MAX_CHARS:
        raise UnreadableDefinition(
            '%d characters, more than %d' % (len(text), MAX_CHARS)
        )
    parser = ElementTree.XMLParser(target=_NoDoctype())
    try:
        parser.feed(text)
        root: ElementTree.Element = parser.close()
    except ElementTree.ParseError as error:
        raise UnreadableDefinition('not well-formed: %s' % error) from None
    return root


def parse(text: str) -> Definition:
    """Read a live definition.

    A part that cannot be parsed is reported as the metadata's problem; the
    domain is still listed.

    :param text: what libvirt's XMLDesc returned.
    """
    try:
        root = parse_xml(text)
        if root.tag != 'domain':
            raise UnreadableDefinition(
                '%s is not a domain' % ascii(root.tag)[:64]
            )
    except UnreadableDefinition as error:
        return Definition(
            metadata.Metadata(
                problem='the definition cannot be read: %s' % error
            )
        )
    extra = metadata.read(root.find('metadata'))
    try:
        default, by_vcpu = _pinning(root)
    except ValueError as error:
        # A vCPU with unknown pinning must not be treated as unpinned: no
        # reservation then.
        extra = dataclasses.replace(
            extra,
            extra_specs={},
            problem='the pinning cannot be read: %s' % error,
        )
        default, by_vcpu = None, {}
    return Definition(
        extra, default, by_vcpu, _interfaces(root), _disks(root), _quota(root)
    )


def _pinning(
    root: ElementTree.Element,
) -> tuple[frozenset[int] | None, dict[int, frozenset[int]]]:
    vcpu = root.find('vcpu')
    text = vcpu.get('cpuset') if vcpu is not None else None
    default = cpu_list.parse(text) if text else None
    by_vcpu = {}
    for pin in root.iterfind('cputune/vcpupin'):
        by_vcpu[int(pin.get('vcpu', ''))] = cpu_list.parse(
            pin.get('cpuset', '')
        )
    return default, by_vcpu


def _quota(root: ElementTree.Element) -> tuple[int, int] | None:
    quota = root.findtext('cputune/quota')
    if quota is None:
        return None
    try:
        found = (
            int(quota),
            int(root.findtext('cputune/period') or _DEFAULT_PERIOD_US),
        )
    except ValueError:
        return None
    return found if found[0] > 0 else None


def _interfaces(root: ElementTree.Element) -> tuple[base.Interface, ...]:
    # A passed-through device has no end on the host.
    found = []
    for interface in root.iterfind('devices/interface'):
        target = interface.find('target')
        device = target.get('dev') if target is not None else None
        if device:
            found.append(
                base.Interface(device, interface.get('type') == 'direct')
            )
    return tuple(found)


def _disks(root: ElementTree.Element) -> tuple[str, ...]:
    return tuple(
        target.get('dev', '')
        for target in root.iterfind('devices/disk/target')
    )
