# SPDX-License-Identifier: Apache-2.0

"""Hosts as nova-scheduler sees them, made up, and what vsched knows of them.

Nova's own classes, with what its filters look at: 20 instances each, NUMA
cells, an aggregate, a service that is up.
"""

from collections.abc import Iterator
import contextlib
import datetime
import json
import logging
import os
import random
import typing as ty
import uuid

from benchmarks import frame
from vsched_lib.contract import snapshot

try:
    os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', '1')
    from nova import objects
    from nova.objects import fields
    from nova.scheduler import host_manager
except ImportError as missing:
    _MISSING: ImportError | None = missing
else:
    _MISSING = None

INSTANCES = 20
CLASSES = ('compute', 'bandwidth', 'disk', 'transactional', 'web')
_SHARES_PPM = tuple(
    share * 10_000 for share in (*range(1, 10), *range(10, 100, 10))
)
_PERIODS_US = (10_000, 20_000, 100_000)

#: A flavor that every filter of ours has a question about.
SPECS = {
    'vsched:cpu_runtime_us': '5000',
    'vsched:cpu_period_us': '20000',
    'vsched:max_alloc_error_pct': '2',
    'vsched:io_charging': 'charge',
    'vsched:net_rx_pps': '1000',
    'vsched:workload_class': 'web',
    # What AggregateInstanceExtraSpecsFilter looks at.
    'aggregate_instance_extra_specs:ssd': 'true',
}


def prepare() -> None:
    """Make Nova's objects known.

    :raises frame.Unavailable: when Nova is not installed.
    """
    if _MISSING is not None:
        raise frame.Unavailable('Nova is not installed: %s' % _MISSING)
    objects.register_all()


def request() -> ty.Any:
    """A request for one instance with two vCPUs and a NUMA topology."""
    return objects.RequestSpec(
        instance_uuid=str(uuid.uuid4()),
        num_instances=1,
        flavor=objects.Flavor(
            flavorid='1',
            name='f',
            vcpus=2,
            memory_mb=512,
            root_gb=1,
            ephemeral_gb=0,
            swap=0,
            disabled=False,
            is_public=True,
            rxtx_factor=1.0,
            vcpu_weight=0,
            description=None,
            projects=[],
            extra_specs=dict(SPECS),
        ),
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        scheduler_hints={},
        requested_resources=[],
        request_level_params=(objects.RequestLevelParams()),
        pci_requests=objects.InstancePCIRequests(requests=[]),
        numa_topology=objects.InstanceNUMATopology(
            cells=[
                objects.InstanceNUMACell(
                    id=0, cpuset={0, 1}, pcpuset=set(), memory=512
                )
            ]
        ),
        instance_group=None,
        availability_zone=None,
        ignore_hosts=None,
        force_hosts=None,
        force_nodes=None,
        requested_destination=None,
        retry=None,
        limits=objects.SchedulerLimits(),
        is_bfv=False,
        security_groups=objects.SecurityGroupList(objects=[]),
        user_id='u',
        project_id='p',
    )


def states(count: int) -> list[ty.Any]:
    """As many hosts, each with its instances."""
    aggregate = objects.Aggregate(
        id=1, name='a', metadata={'ssd': 'true'}, hosts=[]
    )
    service = {
        'disabled': False,
        'host': 'x',
        'topic': 'compute',
        'last_seen_up': datetime.datetime.now(datetime.UTC).replace(
            tzinfo=None
        )
        + datetime.timedelta(hours=1),
        'updated_at': None,
        'created_at': None,
        'forced_down': False,
    }
    flavors = [
        objects.Flavor(extra_specs={**SPECS, 'vsched:workload_class': name})
        for name in CLASSES
    ]
    return [
        _state(number, aggregate, service, flavors) for number in range(count)
    ]


def _state(
    number: int, aggregate: ty.Any, service: ty.Any, flavors: list[ty.Any]
) -> ty.Any:
    name = 'node%05d' % number
    found = host_manager.HostState(name, name, 'cell1')
    found.uuid = str(uuid.uuid4())
    found.aggregates = [aggregate]
    found.service = service
    found.cpu_allocation_ratio = found.ram_allocation_ratio = 16.0
    found.num_instances = INSTANCES
    found.numa_topology = objects.NUMATopology(
        cells=[
            objects.NUMACell(
                id=cell,
                cpuset=set(range(cell * 8, cell * 8 + 8)),
                pcpuset=set(),
                memory=65536,
                cpu_usage=8,
                memory_usage=8192,
                mempages=[],
                siblings=[],
                pinned_cpus=set(),
                network_metadata=objects.NetworkMetadata(
                    physnets=set(), tunneled=False
                ),
                socket=cell,
            )
            for cell in range(2)
        ]
    )
    found.pci_stats = None
    found.allocation_candidates = [{'mappings': {}}]
    for instance in range(INSTANCES):
        key = str(uuid.uuid4())
        found.instances[key] = objects.Instance(
            uuid=key,
            host=name,
            vm_state=fields.InstanceState.ACTIVE,
            flavor=flavors[(number + instance) % len(flavors)],
        )
    return found


def told(count: int, version: int = 1) -> snapshot.Snapshot:
    """What the service would tell of these hosts.

    One in ten is full, one in ten errs too much, one in ten was never
    measured.
    """
    facts = snapshot.Facts(16, 4_000, 15_000, ('deadline', 'cfs'))
    draw = random.Random(count)
    prices_ns = {
        'net_rx': 4_000.0,
        'net_tx': 5_000.0,
        'disk_read': 20_000.0,
        'disk_write': 25_000.0,
        'wakeups': 2_000.0,
        'idle_s': 100_000.0,
    }
    return snapshot.Snapshot(
        version=version + count,
        full=True,
        more=False,
        removed=(),
        down=(),
        hosts=tuple(
            snapshot.Host(
                'node%05d' % number,
                version + number,
                14_900 if number % 10 == 1 else 400 * (number % INSTANCES),
                facts,
                ()
                if number % 10 == 2
                else _certificates(
                    -400_000 if number % 10 == 3 else -4_000, draw
                ),
                prices_ns,
            )
            for number in range(count)
        ),
    )


def _certificates(
    lower_ppm: int, draw: random.Random
) -> tuple[snapshot.Certificate, ...]:
    # No two hosts measure the same.
    return tuple(
        snapshot.Certificate(
            backend,
            period_us,
            _SHARES_PPM,
            tuple(
                lower_ppm - int(draw.random() * 5e8 / share_ppm)
                for share_ppm in _SHARES_PPM
            ),
        )
        for backend in ('cfs', 'deadline')
        for period_us in _PERIODS_US
    )


def through_json(found: snapshot.Snapshot) -> snapshot.Snapshot:
    """As it comes off the wire: nothing in it is shared."""
    return snapshot.Snapshot.from_dict(json.loads(json.dumps(found.to_dict())))


def empty(count: int, vcpus: int) -> list[ty.Any]:
    """Hosts on which nothing runs yet."""
    found = []
    for number in range(count):
        name = 'node%05d' % number
        state = host_manager.HostState(name, name, 'cell1')
        state.uuid = str(uuid.uuid4())
        state.vcpus_total = vcpus
        state.cpu_allocation_ratio = state.ram_allocation_ratio = 1.0
        state.total_usable_ram_mb = state.free_ram_mb = vcpus * 2048
        state.free_disk_mb = vcpus * 20 * 1024
        state.hypervisor_version = 1
        state.pci_stats = None
        found.append(state)
    return found


def small(workload_class: str) -> ty.Any:
    """A request for one vCPU of a class, with a flavor of its own."""
    spec = request()
    spec.flavor.vcpus = 1
    spec.numa_topology = None
    spec.flavor.extra_specs = {
        'vsched:cpu_runtime_us': '5000',
        'vsched:workload_class': workload_class,
    }
    return spec


def instance(key: str, workload_class: str) -> ty.Any:
    """What Nova knows of one that runs."""
    return objects.Instance(
        uuid=key,
        flavor=objects.Flavor(
            extra_specs={'vsched:workload_class': workload_class}
        ),
    )


def leave(state: ty.Any, key: str) -> None:
    """An instance of :func:`small` is gone from its host."""
    del state.instances[key]
    state.vcpus_used -= 1
    state.num_instances -= 1
    state.num_io_ops -= 1
    state.free_ram_mb += 512
    state.free_disk_mb += 1024


@contextlib.contextmanager
def logging_as_nova() -> Iterator[None]:
    """Write logs as nova-scheduler does, but nowhere.

    What it writes is part of the cost of filters.
    """
    root = logging.getLogger()
    before = root.level, list(root.handlers)
    with open(os.devnull, 'w', encoding='utf-8') as nowhere:
        root.handlers = [logging.StreamHandler(nowhere)]
        root.setLevel(logging.INFO)
        try:
            yield
        finally:
            root.setLevel(before[0])
            root.handlers = before[1]
