# SPDX-License-Identifier: Apache-2.0

"""Definitions (XML) of small domains that vsched itself runs.

They boot a kernel directly, have no disk and no network but those they are
given, and say on a serial line how far they are. Used to show, test and
calibrate.
"""

from collections.abc import Mapping
import dataclasses
import uuid as uuids
from xml.etree import ElementTree

from vsched_agent.host import cpu_list
from vsched_agent.hypervisor.libvirt import metadata

Element = ElementTree.Element
_sub = ElementTree.SubElement

#: The name by which QEMU's guest agent finds its channel.
AGENT_CHANNEL = 'org.qemu.guest_agent.0'


#: In the command line of every guest's kernel. Emulated, it would choose the
#: HPET as its clock, and each reading of that traps into QEMU: locks and
#: timers then cost several times what they cost anywhere else.
CLOCK_SOURCE = 'tsc'
#: Without its check of the timer's interrupt: an emulated CPU that is not
#: scheduled for some ticks fails it, and the kernel panics.
_CMDLINE = (
    'console=ttyS0 quiet no_timer_check tsc=reliable clocksource=%s'
    % CLOCK_SOURCE
)


def cmdline(*words: str) -> str:
    """Return the kernel command line of a guest.

    :param words: the arguments of the guest's first process, see
        ``tools/guest/init``.
    """
    return ' '.join((_CMDLINE, *words))


@dataclasses.dataclass(frozen=True, slots=True)
class Network:
    """A network card on a bridge of the host.

    :param bridge: its name.
    :param mac: address of the card; None leaves it to libvirt.
    """

    bridge: str
    mac: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Disk:
    """A disk that is a raw image on the host.

    :param path: of the image.
    :param direct: past the host's page cache (``cache=none``,
        ``io=native``), as far as the image's file system can.
    :param iothread: number of the iothread that serves it, from 1; None for
        QEMU's main thread.
    """

    path: str
    direct: bool = True
    iothread: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class DomainSpec:
    """A small domain.

    :param name: unique on the host.
    :param kernel: path of an ELF kernel (PVH) or bzImage.
    :param initrd: path of an initial RAM file system.
    :param cmdline: the kernel's command line.
    :param vcpus: vCPUs at the start.
    :param max_vcpus: vCPUs that can be plugged in; ``vcpus`` when None.
    :param memory_mib: memory in MiB.
    :param virt_type: ``kvm`` or ``qemu`` (emulation).
    :param emulator: path of QEMU; None leaves it to libvirt.
    :param serial_file: where the guest's serial console is written.
    :param extra_specs: full names to text.
    :param pins: host CPUs by vCPU.
    :param cpuset: host CPUs of all vCPUs; None for all.
    :param iothreads: threads dedicated to block I/O.
    :param networks: its cards, eth0 first.
    :param disks: vda first.
    """

    name: str
    kernel: str
    initrd: str
    cmdline: str = _CMDLINE
    uuid: str = dataclasses.field(default_factory=lambda: str(uuids.uuid4()))
    vcpus: int = 1
    max_vcpus: int | None = None
    memory_mib: int = 96
    virt_type: str = 'qemu'
    emulator: str | None = None
    serial_file: str | None = None
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    pins: Mapping[int, frozenset[int]] = dataclasses.field(
        default_factory=dict
    )
    cpuset: frozenset[int] | None = None
    iothreads: int = 0
    networks: tuple[Network, ...] = ()
    disks: tuple[Disk, ...] = ()


def build(spec: DomainSpec) -> str:
    """The definition, ready for libvirt."""
    root = Element('domain', type=spec.virt_type)
    _text(root, 'name', spec.name)
    _text(root, 'uuid', spec.uuid)
    if spec.extra_specs:
        _sub(root, 'metadata').append(_metadata(spec.extra_specs))
    _text(root, 'memory', str(spec.memory_mib)).set('unit', 'MiB')
    vcpu = _text(root, 'vcpu', str(spec.max_vcpus or spec.vcpus))
    vcpu.set('placement', 'static')
    vcpu.set('current', str(spec.vcpus))
    if spec.cpuset is not None:
        vcpu.set('cpuset', cpu_list.render(spec.cpuset))
    if spec.iothreads:
        _text(root, 'iothreads', str(spec.iothreads))
    if spec.pins:
        tune = _sub(root, 'cputune')
        for index, cpus in sorted(spec.pins.items()):
            _sub(
                tune, 'vcpupin', vcpu=str(index), cpuset=cpu_list.render(cpus)
            )
    _boot(root, spec)
    _machine(root, spec.virt_type)
    _devices(_sub(root, 'devices'), spec)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding='unicode')


def _metadata(extra_specs: Mapping[str, str]) -> Element:
    # As Nova writes it.
    namespace = '{%s}' % metadata.NOVA_NS
    root = Element(namespace + 'instance')
    flavor = _sub(root, namespace + 'flavor', name='vsched')
    parent = _sub(flavor, namespace + 'extraSpecs')
    for name, text in extra_specs.items():
        _text(parent, namespace + 'extraSpec', text).set('name', name)
    return root


def _text(parent: Element, tag: str, text: str) -> Element:
    element = _sub(parent, tag)
    element.text = text
    return element


def _boot(root: Element, spec: DomainSpec) -> None:
    system = _sub(root, 'os')
    _text(system, 'type', 'hvm').attrib.update(arch='x86_64', machine='q35')
    _text(system, 'kernel', spec.kernel)
    _text(system, 'initrd', spec.initrd)
    _text(system, 'cmdline', spec.cmdline)


def _machine(root: Element, virt_type: str) -> None:
    # Without ACPI no vCPU can be plugged in.
    features = _sub(root, 'features')
    _sub(features, 'acpi')
    _sub(features, 'apic')
    if virt_type == 'kvm':
        # qemu64 has features that only hosts of one maker have.
        _sub(root, 'cpu', mode='host-passthrough')
    else:
        cpu = _sub(root, 'cpu', mode='custom', match='exact')
        _text(cpu, 'model', 'qemu64').set('fallback', 'forbid')
    _sub(root, 'clock', offset='utc')
    for event, action in (
        ('on_poweroff', 'destroy'),
        ('on_reboot', 'restart'),
        ('on_crash', 'destroy'),
    ):
        _text(root, event, action)


def _devices(devices: Element, spec: DomainSpec) -> None:
    if spec.emulator:
        _text(devices, 'emulator', spec.emulator)
    if spec.serial_file:
        serial = _sub(devices, 'serial', type='file')
        _sub(serial, 'source', path=spec.serial_file)
        _sub(serial, 'target', port='0')
    for place, disk in enumerate(spec.disks):
        _disk(devices, 'vd%c' % (ord('a') + place), disk)
    for network in spec.networks:
        card = _sub(devices, 'interface', type='bridge')
        if network.mac:
            _sub(card, 'mac', address=network.mac)
        _sub(card, 'source', bridge=network.bridge)
        _sub(card, 'model', type='virtio')
        # A card with an option ROM needs a file that QEMU's package may
        # not have, and nobody boots from it.
        _sub(card, 'rom', enabled='no')
    channel = _sub(devices, 'channel', type='unix')
    _sub(channel, 'target', type='virtio', name=AGENT_CHANNEL)
    # libvirt would add these by itself, and they cost time at boot.
    _sub(devices, 'controller', type='usb', model='none')
    _sub(devices, 'memballoon', model='none')


def _disk(devices: Element, name: str, disk: Disk) -> None:
    element = _sub(devices, 'disk', type='file', device='disk')
    driver = _sub(element, 'driver', name='qemu', type='raw')
    if disk.direct:
        driver.attrib.update(cache='none', io='native')
    else:
        driver.set('cache', 'writeback')
    if disk.iothread is not None:
        driver.set('iothread', str(disk.iothread))
    _sub(element, 'source', file=disk.path)
    _sub(element, 'target', dev=name, bus='virtio')
