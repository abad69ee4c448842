# SPDX-License-Identifier: Apache-2.0

"""What a test needs from the machine: skip without it, or fail.

On a laptop a test that needs a hypervisor or a broker is skipped where there
is none. A run that promises to cover them must not shrink in silence: it
names the parts in ``VSCHED_REQUIRE``, and their absence is a failure there.
"""

import os
import typing
import unittest

#: The parts that tests may ask for.
#: ``nova`` stands for the OpenStack services of the extra ``openstack``: Nova,
#: placement, keystone.
PARTS = (
    'libvirt',
    'rabbitmq',
    'postgresql',
    'mariadb',
    'nova',
    'nginx',
    'prometheus',
    'chromium',
)

#: Environment variable with a comma-separated list of parts.
VARIABLE = 'VSCHED_REQUIRE'


def required() -> frozenset[str]:
    """Read which parts must be there.

    :returns: the names in ``VSCHED_REQUIRE``, without blanks
    """
    names = os.environ.get(VARIABLE, '').split(',')
    return frozenset(name.strip() for name in names if name.strip())


def require(
    test: unittest.TestCase, part: str, reason: str
) -> typing.NoReturn:
    """End a test whose part is missing.

    Call it once the part was found missing; it never returns.

    :param test: the running test
    :param part: one of :data:`PARTS`
    :param reason: what was tried and what came back, for the reader
    :raises unittest.SkipTest: when the part is optional here
    :raises AssertionError: when ``VSCHED_REQUIRE`` names the part, or
        something that is none
    :raises ValueError: when nothing is called so
    """
    if part not in PARTS:
        raise ValueError(
            '%r is none of the parts %s' % (part, ', '.join(PARTS))
        )
    unknown = sorted(required().difference(PARTS))
    if unknown:
        raise test.failureException(
            '%s names %s, which is none of the parts %s'
            % (VARIABLE, ', '.join(unknown), ', '.join(PARTS))
        )
    if part in required():
        raise test.failureException(
            '%s is required (%s) but missing: %s' % (part, VARIABLE, reason)
        )
    raise unittest.SkipTest('%s is missing: %s' % (part, reason))
