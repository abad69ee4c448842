# SPDX-License-Identifier: Apache-2.0

"""The files for Prometheus and Grafana in ``etc/vsched``."""

from collections.abc import Iterator
import json
import pathlib
import re
import typing as ty

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / 'etc' / 'vsched' / 'prometheus'
GRAFANA = ROOT / 'etc' / 'vsched' / 'grafana'
#: The page with the runbooks, below the root.
PAGE = ROOT / 'doc' / 'source' / 'admin' / 'monitoring.rst'

#: What Grafana replaces in expressions, besides variables of a dashboard.
_BUILT_IN = {'__rate_interval'}


def load(name: str) -> ty.Any:
    """Return the content of a YAML file for Prometheus."""
    return yaml.safe_load((PROMETHEUS / name).read_text(encoding='utf-8'))


def alerts() -> dict[str, dict[str, ty.Any]]:
    """Return the alerts by name.

    :raises ValueError: when two have the same name.
    """
    found: dict[str, dict[str, ty.Any]] = {}
    for group in load('rules.yaml')['groups']:
        for rule in group['rules']:
            if rule['alert'] in found:
                raise ValueError(rule['alert'])
            found[rule['alert']] = rule
    return found


def dashboards() -> dict[str, dict[str, ty.Any]]:
    """Return the dashboards by the names of their files."""
    return {
        path.name: json.loads(path.read_text(encoding='utf-8'))
        for path in sorted(GRAFANA.glob('*.json'))
    }


def expressions(
    dashboard: dict[str, ty.Any], **values: str
) -> Iterator[tuple[str, str]]:
    """Yield the expressions of a dashboard with the titles of their panels.

    :param values: of variables.
    """
    for panel in dashboard['panels']:
        for target in panel['targets']:
            yield panel['title'], substitute(target['expr'], **values)


def substitute(expression: str, **values: str) -> str:
    """Return an expression with values instead of variables."""
    for name, value in values.items():
        expression = expression.replace('$' + name, value)
    return expression


def variables(expression: str) -> set[str]:
    """Return the variables of a dashboard in an expression."""
    return set(re.findall(r'\$(\w+)', expression)) - _BUILT_IN


def metrics(expression: str) -> dict[str, set[str]]:
    """Return metrics of ours in an expression, with labels they select by."""
    found: dict[str, set[str]] = {}
    for name, selector in re.findall(
        r'\b(vsched_\w+)(?:\{([^}]*)\})?', expression
    ):
        found.setdefault(name, set()).update(
            re.findall(r'(\w+)\s*[=!]', selector)
        )
    return found


def compared(expression: str) -> str:
    """Return the expression of an alert without comparisons with numbers.

    It has a result also while the alert does not fire.
    """
    return re.sub(r'\s(==|[<>])\s-?[0-9.]+', '', expression)
