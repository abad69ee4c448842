# SPDX-License-Identifier: Apache-2.0

"""Check that Nova finds the filters, weighers and validators of vsched.

    nova_scheduler.py NOVA_CONF

It runs with Nova's own Python; NOVA_CONF is nova-scheduler's configuration.
"""

import sys
import typing as ty

from nova import conf
from nova import exception
import nova_filters.conf

RUNTIME = 'vsched:cpu_runtime_us'


def names(handler: ty.Any, modules: list[str]) -> set[str]:
    """Return the names of the classes that an option of Nova selects."""
    return {one.__name__ for one in handler.get_matching_classes(modules)}


def main(path: str) -> None:
    """Load what Nova's services load."""
    nova_filters.conf.register_opts(conf.CONF)
    conf.CONF(['--config-file', path], project='nova')
    # These read options when they are imported.
    from nova.api.validation.extra_specs import validators
    from nova.scheduler import filters
    from nova.scheduler import weights

    options = conf.CONF.filter_scheduler
    found = names(filters.HostFilterHandler(), options.available_filters)
    missing = set(options.enabled_filters) - found
    assert not missing, missing
    found = names(weights.HostWeightHandler(), options.weight_classes)
    missing = {one.__name__ for one in weights.all_weighers()} - found
    assert not missing, "Nova's own weighers are off: %s" % sorted(missing)
    found.update(options.enabled_filters)
    ours = sorted(one for one in found if one.startswith('Vsched'))
    assert 'VschedReservationFilter' in ours, ours
    assert any(one.endswith('Weigher') for one in ours), ours
    validators.load_validators()
    validators.validate(RUNTIME, '12000')
    try:
        validators.validate(RUNTIME, 'much')
    except exception.ValidationError:
        pass
    else:
        raise AssertionError('nova-api accepts an invalid %s' % RUNTIME)
    print('nova finds', ', '.join(ours))


if __name__ == '__main__':
    main(sys.argv[1])
