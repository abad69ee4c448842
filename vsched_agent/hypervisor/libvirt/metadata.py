# SPDX-License-Identifier: Apache-2.0

"""Extra specs in the metadata of a domain, and Nova's names of it.

Nova's libvirt driver writes the server's name, its project and its flavor
with the extra specs there (``LibvirtConfigGuestMetaNovaInstance``)::

    <nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1">
      <nova:name>web-1</nova:name>
      <nova:flavor name="small" id="...">
        <nova:extraSpecs>
          <nova:extraSpec name="vsched:cpu_runtime_us">12000</nova:extraSpec>
        </nova:extraSpecs>
      </nova:flavor>
      <nova:owner>
        <nova:project uuid="...">web</nova:project>

An instance that Nova did not create can use vsched's own element::

    <vsched:reservation xmlns:vsched="urn:vsched:reservation:1">
      <vsched:extra_spec name="vsched:cpu_runtime_us">12000</vsched:extra_spec>

where ``virsh metadata DOMAIN --uri urn:vsched:reservation:1 --key vsched
--set '<reservation>...</reservation>'`` sets it. Where both have vsched's
extra specs, Nova's are used: the instance was scheduled and billed by them.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import re
from xml.etree import ElementTree

from vsched_agent.hypervisor import base
from vsched_lib.contract import bounds
from vsched_lib.contract import spec_values

#: The namespace of the element that an operator may set.
PLAIN_NS = 'urn:vsched:reservation:1'
#: The namespace of current Nova; older ones differ in the number.
NOVA_NS = 'http://openstack.org/xmlns/libvirt/nova/1.1'

#: Nova's own bound on names, and on values of extra specs, in characters.
MAX_CHARS = 255
#: Extra specs read of one domain; a flavor has a few dozen.
MAX_SPECS = 1024

_NOVA_INSTANCE = re.compile(
    r'\{http://openstack\.org/xmlns/libvirt/nova/1\.[0-9]{1,3}\}instance\Z'
)
_PLAIN_RESERVATION = '{%s}reservation' % PLAIN_NS
_PLAIN_SPEC = '{%s}extra_spec' % PLAIN_NS
_PROJECT_ID = re.compile(r'%s{1,64}\Z' % bounds.WORD_PATTERN.rstrip('+'))


@dataclasses.dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of one domain.

    :param extra_specs: full names to text; none of vsched's when there is a
        problem, so that no partial reservation is applied.
    :param problem: what cannot be read, in one sentence, or None.
    :param server: Nova's names of the domain.
    """

    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    problem: str | None = None
    server: base.Server = base.Server()


class _Malformed(ValueError):
    """The metadata is invalid."""


def read(metadata: ElementTree.Element | None) -> Metadata:
    """Read the ``<metadata>`` element of a domain.

    :param metadata: the element, or None when the domain has none.
    """
    if metadata is None:
        return Metadata()
    specs: dict[str, str] = {}
    server = _server(metadata)
    try:
        for element in metadata:
            if _NOVA_INSTANCE.match(str(element.tag)):
                specs.update(_collect('nova:extraSpec', _nova_specs(element)))
        if not any(map(_ours, specs)):
            for element in metadata:
                if element.tag == _PLAIN_RESERVATION:
                    specs.update(
                        _collect('vsched:extra_spec', _plain_specs(element))
                    )
    except _Malformed as problem:
        return Metadata(
            {name: text for name, text in specs.items() if not _ours(name)},
            str(problem),
            server,
        )
    return Metadata(specs, server=server)


def _server(metadata: ElementTree.Element) -> base.Server:
    """Return what Nova says; nothing where several elements say it."""
    found = [one for one in metadata if _NOVA_INSTANCE.match(str(one.tag))]
    if len(found) != 1:
        return base.Server()
    (instance,) = found
    namespace = instance.tag[: -len('instance')]
    project_id = _attribute(
        instance.find('%sowner/%sproject' % (namespace, namespace)), 'uuid'
    )
    return base.Server(
        _name(instance.findtext(namespace + 'name')),
        # An identifier is never cut: another one would result.
        project_id
        if project_id is not None and _PROJECT_ID.match(project_id)
        else None,
        _name(_attribute(instance.find(namespace + 'flavor'), 'name')),
    )


def _attribute(element: ElementTree.Element | None, name: str) -> str | None:
    return None if element is None else element.get(name)


def _name(text: str | None) -> str | None:
    return None if text is None else text.strip()[:MAX_CHARS] or None


def _ours(name: str) -> bool:
    return name.startswith(spec_values.PREFIX)


def _nova_specs(
    instance: ElementTree.Element,
) -> Iterable[ElementTree.Element]:
    namespace = instance.tag[: -len('instance')]
    return instance.iterfind(
        '%sflavor/%sextraSpecs/%sextraSpec' % ((namespace,) * 3)
    )


def _plain_specs(
    element: ElementTree.Element,
) -> Iterable[ElementTree.Element]:
    for child in element:
        if child.tag != _PLAIN_SPEC:
            raise _Malformed(
                'metadata %s holds an element %s; only vsched:extra_spec '
                'is allowed there' % (PLAIN_NS, _quote(str(child.tag)))
            )
        yield child


def _collect(
    kind: str, elements: Iterable[ElementTree.Element]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for count, element in enumerate(elements):
        if count >= MAX_SPECS:
            raise _Malformed(
                'metadata holds more than %d elements %s' % (MAX_SPECS, kind)
            )
        name = element.get('name')
        if not name:
            raise _Malformed('metadata holds a %s without a name' % kind)
        text = element.text or ''
        if max(len(name), len(text)) > MAX_CHARS or len(element):
            if not _ours(name):
                continue
            raise _Malformed(
                'metadata %s is not a text of at most %d characters'
                % (_quote(name), MAX_CHARS)
            )
        if found.setdefault(name, text) != text and _ours(name):
            raise _Malformed(
                'metadata has both %s and %s for %s'
                % (_quote(found[name]), _quote(text), _quote(name))
            )
    return found


def _quote(text: str) -> str:
    quoted = ascii(text)
    return quoted if len(quoted) <= 64 else quoted[:64] + '...'
