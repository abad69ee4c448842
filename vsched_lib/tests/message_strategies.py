# SPDX-License-Identifier: Apache-2.0

"""Messages that hypothesis draws from the bounds their fields declare."""

import dataclasses
import enum
import functools
import typing as ty

import hypothesis
from hypothesis import strategies as st

from vsched_lib.contract import bounds
from vsched_lib.contract import wire

_SHOWN = st.characters(
    codec='utf-8',
    exclude_characters=''.join(map(chr, [*range(9), *range(11, 32), 127])),
)
_KEYS = st.text(_SHOWN, max_size=8)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-bounds.MAX_INTEGER, bounds.MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(_SHOWN, max_size=8)
)

#: JSON of any kind, far beyond every bound included.
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**200), 2**200)
    | st.floats()
    | st.text(st.characters())
    | st.sampled_from(
        (
            10**15,
            2**53,
            2**63,
            2**63 - 1,
            -1,
            1e308,
            -0.0,
            float('nan'),
            float('inf'),
            'node1',
            'node1 ',
            '\0',
            '../../allocations/x',
            'A' * 5000,
            [[]] * 9,
        )
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def bounded(examples: int) -> hypothesis.settings:
    """Return the settings of a test of as many examples, always the same."""
    return hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


def valid(kind: type[wire.Message]) -> st.SearchStrategy[ty.Any]:
    """Messages within their bounds, as JSON types.

    :param kind: the message.
    """
    return _object(kind, _valid)


def invalid(
    kind: type[wire.Message],
) -> st.SearchStrategy[tuple[str, dict[str, ty.Any]]]:
    """Messages of which one value is outside its bound.

    :param kind: the message.
    :returns: the name of the field as errors name it, and the message.
    """
    ways = [
        _broken(kind, name, bad)
        for name, hint, _ in _fields(kind)
        for bad in _outside(hint)
    ]
    return st.one_of(ways)


def nearly(kind: type[wire.Message]) -> st.SearchStrategy[ty.Any]:
    """Messages any value of which may be anything."""
    return _object(kind, lambda hint: _sometimes(_nearly(hint)))


def _sometimes(drawn: st.SearchStrategy[ty.Any]) -> st.SearchStrategy[ty.Any]:
    return st.integers(0, 15).flatmap(
        lambda number: ANYTHING if number == 15 else drawn
    )


@functools.cache
def _hints(kind: type) -> dict[str, ty.Any]:
    return ty.get_type_hints(kind, include_extras=True)


def _fields(kind: type) -> list[tuple[str, ty.Any, bool]]:
    return [
        (
            field.name,
            _hints(kind)[field.name],
            field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(kind)
    ]


def _object(
    kind: type, draw: ty.Callable[[ty.Any], ty.Any]
) -> st.SearchStrategy[ty.Any]:
    return st.fixed_dictionaries(
        {
            name: draw(hint)
            for name, hint, required in _fields(kind)
            if required
        },
        optional={
            name: draw(hint)
            for name, hint, required in _fields(kind)
            if not required
        },
    )


def _valid(hint: ty.Any) -> st.SearchStrategy[ty.Any]:
    return _within(hint, _valid)


def _nearly(hint: ty.Any) -> st.SearchStrategy[ty.Any]:
    return _within(hint, lambda inner: _sometimes(_nearly(inner)))


def _within(
    hint: ty.Any, inner: ty.Callable[[ty.Any], ty.Any]
) -> st.SearchStrategy[ty.Any]:
    kind, bound, optional = wire.split(hint)
    found = _of(kind, bound, inner)
    return st.none() | found if optional else found


def _of(
    kind: ty.Any, bound: ty.Any, inner: ty.Callable[[ty.Any], ty.Any]
) -> st.SearchStrategy[ty.Any]:
    if isinstance(bound, bounds.Items):
        return st.lists(
            inner(ty.get_args(kind)[0]),
            min_size=bound.low,
            max_size=max(bound.low, min(bound.high, 2)),
        )
    if isinstance(bound, bounds.Json):
        values = (
            _SCALARS
            if bound.depth == 1
            else _SCALARS | st.lists(_SCALARS, max_size=2)
        )
        return st.dictionaries(_KEYS, values, max_size=3)
    if isinstance(bound, bounds.Text):
        if bound.pattern is None:
            return st.text(_SHOWN, max_size=8)
        return st.from_regex(bound.pattern, fullmatch=True).filter(
            lambda text: len(text) <= bound.max_chars
        )
    if isinstance(bound, bounds.Range):
        if kind is int:
            return st.integers(int(bound.low), int(bound.high))
        return st.floats(bound.low, bound.high)
    if kind is bool:
        return st.booleans()
    if issubclass(kind, enum.Enum):
        return st.sampled_from([one.value for one in kind])
    return _object(kind, inner)


def _outside(hint: ty.Any) -> list[ty.Any]:
    """Values that a field does not accept."""
    kind, bound, _ = wire.split(hint)
    if isinstance(bound, bounds.Range):
        return [
            bound.low - abs(bound.low) - 1,
            bound.high * 2 + 1,
            'x',
            True,
            float('nan'),
            float('inf'),
            2**200,
        ]
    if isinstance(bound, bounds.Items):
        found = [[None] * (bound.high + 1), {}, 'x', 3]
        if bound.columns:
            name = _fields(ty.get_args(kind)[0])[0][0]
            found += [
                {name: column}
                for column in ('x', [], [None], [None] * (bound.high + 1))
            ]
        return found
    if isinstance(bound, bounds.Json):
        deep: ty.Any = {}
        for _ in range(bound.depth + 1):
            deep = {'a': deep}
        return [
            deep,
            {'a' * (bound.key_chars + 1): 1},
            {'a': 'a' * (bound.chars + 1)},
            {'a': 2**63},
            {'a': float('nan')},
            {str(key): 1 for key in range(bound.values + 1)},
            [],
            'x',
        ]
    if isinstance(bound, bounds.Text):
        return [
            3,
            None if hint is kind else {},
            *(
                ()
                if bound.clip
                else (
                    'a' * (bound.max_chars + 1),
                    'a\n',
                    'a\0',
                    ' a',
                    '\ud800',
                    '',
                )
            ),
        ]
    if kind is bool:
        return [0, 'true']
    if issubclass(kind, enum.Enum):
        return ['no such word', 3]
    return [3, 'x', []]


def _broken(
    kind: type, name: str, bad: ty.Any
) -> st.SearchStrategy[tuple[str, dict[str, ty.Any]]]:
    return _object(kind, _valid).map(
        lambda message: (_named(kind, name), {**message, name: bad})
    )


def _named(kind: type, name: str) -> str:
    inner = wire.split(_hints(kind)[name])[0]
    if isinstance(inner, type) and issubclass(inner, wire.Message):
        return inner.__name__
    return '%s.%s' % (kind.__name__, name)
