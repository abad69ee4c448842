# SPDX-License-Identifier: Apache-2.0

"""Sphinx, for the API reference."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / 'doc' / 'ext'))

extensions = ['openstackdocstheme', 'vsched_openapi']

project = 'vsched API reference'
copyright = 'vsched developers'
master_doc = 'index'
html_theme = 'openstackdocs'
pygments_style = 'native'
exclude_patterns: list[str] = []

openstackdocs_repo_name = 'openstack/vsched'
openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_pdf_link = False
openstackdocs_use_storyboard = False
version = release = '1.0'
