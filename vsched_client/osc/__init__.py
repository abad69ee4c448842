# SPDX-License-Identifier: Apache-2.0

"""The plugin of python-openstackclient: ``openstack cpu ...``.

``openstack --help`` imports every module of commands; what they need to run
is imported when they run.
"""
