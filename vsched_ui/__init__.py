# SPDX-License-Identifier: Apache-2.0

"""The page for operators: sources in ``src``, built files in ``static``.

The package has no code: vsched_api serves the files of ``static`` at ``/ui``.
"""
