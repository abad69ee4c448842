# SPDX-License-Identifier: Apache-2.0

"""Sphinx, for the documentation."""

import pathlib
import sys
import typing as ty

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / 'doc' / 'ext'))

extensions = [
    'cliff.sphinxext',
    'openstackdocstheme',
    'oslo_config.sphinxext',
    'oslo_policy.sphinxext',
    'vsched_tables',
]

project = 'vsched'
copyright = 'vsched developers'
master_doc = 'index'
html_theme = 'openstackdocs'
pygments_style = 'native'
exclude_patterns: list[str] = []

# Of the commands that "autoprogram-cliff" documents; the options below are
# those of every command.
autoprogram_cliff_application = 'openstack'
autoprogram_cliff_app_dist_name = 'vsched'
autoprogram_cliff_ignored = [
    '--help',
    '--column',
    '--fit-width',
    '--max-width',
    '--noindent',
    '--prefix',
    '--print-empty',
    '--quote',
    '--sort-ascending',
    '--sort-column',
    '--sort-descending',
]

openstackdocs_repo_name = 'openstack/vsched'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_pdf_link = False
openstackdocs_use_storyboard = False
version = release = 'latest'


def _write_evidence(_app: object) -> None:
    """Write the pages of the benchmarks' records."""
    from benchmarks import evidence

    evidence.write()


def setup(app: ty.Any) -> None:
    """Have the evidence written before the pages are read."""
    app.connect('builder-inited', _write_evidence)
