# SPDX-License-Identifier: Apache-2.0

"""Client of the REST API of vsched, and commands of ``openstack``.

It imports no other part of vsched, so that it can be distributed by itself::

    from keystoneauth1 import loading
    from vsched_client.v1 import client

    vsched = client.Client(session)
    for host in vsched.hosts.list():
        print(host['name'], host['state'])
"""
