# SPDX-License-Identifier: Apache-2.0

"""Every command once, against the API of ``functional.api``.

Nova has a flavor :data:`FLAVOR` with :data:`FLAVOR_SPECS`.
"""

from collections.abc import Callable
from collections.abc import Generator
from collections.abc import Sequence
import json
import typing as ty

from vsched_client.tests import outputs
from vsched_client.tests import table_output

HOST = 'node1'
#: The format for people, besides those of :data:`outputs.FORMATS`.
TABLE = 'table'

#: Exit codes.
_DONE, _ERROR, _DIFFERS = 0, 1, 6


class Step(ty.NamedTuple):
    """A command, and what it has to answer.

    :param command: as its entry point names it, with blanks.
    :param arguments: the rest of the words.
    :param code: its exit code.
    :param writes: whether it writes anything.
    """

    command: str
    arguments: tuple[str, ...] = ()
    code: int = _DONE
    writes: bool = True

    def words(self, form: str) -> list[str]:
        """Return the whole command.

        :param form: one of :data:`outputs.FORMATS`, or :data:`TABLE`.
        """
        return [*self.command.split(), *self.arguments, '-f', form]


class Result(ty.NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> ty.Any:
        """The output, read as JSON."""
        return json.loads(self.out)


#: The flavor of Nova that commands change: it has no claim.
FLAVOR = 'm1.reserved'
FLAVOR_SPECS = {'vsched:cpu_runtime_us': '5000'}


def steps(
    reserved: str, plain: str, placement: bool
) -> Generator[Step, ty.Any, None]:
    """Yield each step; takes what its command wrote.

    :param reserved: an instance with a reservation.
    :param plain: an instance without one, of two vCPUs.
    :param placement: whether the service can ask a placement.
    """
    yield Step('cpu host list')
    yield Step('cpu host show', (HOST,))
    if placement:
        yield Step('cpu host audit', (HOST,), _DIFFERS)
    else:
        yield Step('cpu host audit', (HOST,), _ERROR, writes=False)
    yield Step('cpu reservation list')
    yield Step('cpu reservation show', (reserved,))
    yield Step(
        'cpu reservation create',
        (plain, '--share', '30%', '--period', '10ms', '--wait'),
    )
    changed = yield Step(
        'cpu reservation set', (plain, '--share', '20%', '--wait')
    )
    yield Step(
        'cpu reservation unset',
        (plain, '--generation', str(changed['generation']), '--wait'),
    )
    yield Step('cpu usage show', (reserved,))
    yield Step('cpu usage show', ('--of', 'hosts', '--host', HOST))
    yield Step('cpu usage top')
    yield Step('cpu profile list', (HOST,))
    yield Step('cpu profile show', (HOST,))
    yield Step('cpu profile show', (HOST, '--kind', 'overhead'))
    yield Step('cpu profile export', (HOST,))
    job = yield Step('cpu profile create', (HOST,))
    yield Step('cpu job list', ('--host', HOST))
    yield Step('cpu job show', (job['uuid'],))
    yield Step('cpu job cancel', (job['uuid'], '--wait'))
    yield Step('cpu job resume', (job['uuid'],))
    yield Step('cpu balloon list')
    yield Step('cpu balloon show', (plain,))
    yield Step('cpu balloon set', (plain, '--vcpus', '1', '--wait'))
    yield Step('cpu balloon freeze', (plain, '--wait'))
    yield Step('cpu balloon unset', (plain, '--wait'))
    yield Step('cpu balloon history')
    yield Step('cpu event list')
    yield Step('cpu event list', ('--follow', '--timeout', '1us'))
    yield Step('cpu evaluation create', ('--share', '60%', '--instances', '2'))
    yield Step('cpu flavor show', (FLAVOR,), _DIFFERS)
    yield Step('cpu flavor sync', ('--all',))
    yield Step('cpu flavor set', (FLAVOR, '--share', '60%'))


def run(
    execute: Callable[[Sequence[str]], Result],
    reserved: str,
    plain: str,
    placement: bool,
    form: str = 'json',
) -> list[str]:
    """Run every command; return those that answered as they have to.

    :param execute: runs ``openstack`` with these words.
    :param form: one of :data:`outputs.FORMATS`, or :data:`TABLE`, which all
        outputs have.
    :raises AssertionError: when one did not.
    """
    answered = []
    remaining = steps(reserved, plain, placement)
    step = next(remaining)
    while True:
        result = execute(step.words(form))
        found = _read(step, form, result)
        if step.command not in answered:
            answered.append(step.command)
        try:
            step = remaining.send(found)
        except StopIteration:
            return answered


def _read(step: Step, form: str, result: Result) -> ty.Any:
    words = ' '.join(step.words(form))
    if result.code != step.code:
        raise AssertionError(
            '%s: exit code %d, not %d: %s'
            % (words, result.code, step.code, result.err or result.out)
        )
    if not step.writes:
        if result.out:
            raise AssertionError('%s: %s' % (words, result.out))
        return None
    output: table_output.TableOutput | outputs.Output = (
        table_output.TableOutput(step.command, step.arguments)
        if form == TABLE
        else outputs.Output(step.command, step.arguments, form)
    )
    found = output.read(result.out)
    if found:
        output.check(found)
    elif step.command != 'cpu reservation unset':
        raise AssertionError('%s: nothing' % words)
    return found
