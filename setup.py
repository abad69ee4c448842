# SPDX-License-Identifier: Apache-2.0

import setuptools

# pbr derives the version from git and reads setup.cfg.
setuptools.setup(pbr=True)
