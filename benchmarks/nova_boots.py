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

"""Boots at the same time, in a Nova of its own.

    python -m benchmarks.nova_boots ROUNDS RETRIES

A process for each variant: Nova's configuration is the process's. Prints a
JSON object for each round.
"""

import concurrent.futures
import json
import os
import sys
import types
import typing as ty
import unittest

os.environ['VSCHED_REQUIRE'] = 'nova,mariadb'

from vsched_lib.contract import flavors
from vsched_standalone.tests.functional.nova import cloud

#: What is asked for at the same moment, and what there is room for.
BOOTS = 8
ROOM = 4
EACH_MCPU = 500


class Rounds(cloud.Cloud):
    """Rounds of boots on one host; set :attr:`rounds` first."""

    rounds: ty.ClassVar[int]

    def runTest(self) -> None:
        """Boot, look, delete, again."""
        own = self.host('node1', ROOM * EACH_MCPU)
        name = self.flavor()
        self.nova.set_extra_specs(self.found(name), flavors.changed(1, {}, {
            'vsched:cpu_runtime_us': str(20 * EACH_MCPU)}).added)
        with concurrent.futures.ThreadPoolExecutor(BOOTS) as pool:
            for _ in range(self.rounds):
                asked = list(pool.map(
                    lambda _: self.boot(name), range(BOOTS)))
                done = list(pool.map(self.settled, asked))
                print(json.dumps({
                    'active': [one['status'] for one in done].count(
                        'ACTIVE'),
                    'claimed_mcpu': sum(self.claimed(own).values())}),
                    file=sys.__stdout__, flush=True)
                list(pool.map(self._delete_server, done))


def main(rounds: int, retries: int | None) -> int:
    """Run them; the exit code."""
    Rounds.rounds = rounds
    Rounds.placement_options = {} if retries is None else {
        'placement': types.MappingProxyType({
            'allocation_conflict_retry_count': retries})}
    os.environ.setdefault('OS_TEST_TIMEOUT', str(120 + 120 * rounds))
    result = unittest.TextTestRunner(stream=sys.stderr).run(Rounds())
    return 0 if result.wasSuccessful() else 1


if __name__ == '__main__':
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])
                  if len(sys.argv) > 2 else None))
