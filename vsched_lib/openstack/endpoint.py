# SPDX-License-Identifier: Apache-2.0

"""Does a service answer where a client with certain options looks for it?"""

from keystoneauth1 import adapter as adapters
from keystoneauth1 import exceptions


def problem(adapter: adapters.Adapter, path: str) -> str | None:
    """Why a client does not get an answer; None when it does.

    :param adapter: with the client's options: how to authenticate, and which
        endpoint of the catalogue to take.
    :param path: what is asked for; the body of the answer is not read.
    """
    try:
        url = adapter.get_endpoint()
        if url is None:
            return _nowhere(adapter)
        answer = adapter.get(path, raise_exc=False, log=False, stream=True)
    except exceptions.EndpointNotFound:
        return _nowhere(adapter)
    except exceptions.ClientException as failed:
        return ' '.join(str(failed).split())[:300]
    try:
        if answer.status_code == 200 and 'ETag' in answer.headers:
            return None
        return '%s%s answers %d%s' % (
            url,
            path,
            answer.status_code,
            _MEANING.get(answer.status_code, ''),
        )
    finally:
        answer.close()


_MEANING = {
    200: ', but not as vsched-api does',
    401: ': it does not accept the token',
    403: ': the user lacks the role service',
    404: ': the endpoint is not the root of vsched-api',
}


def _nowhere(adapter: adapters.Adapter) -> str:
    interface = adapter.interface or 'public'
    if not isinstance(interface, str):
        interface = ' or '.join(interface)
    wanted = [
        ('service type', adapter.service_type),
        ('service name', adapter.service_name),
        ('interface', interface),
        ('region', adapter.region_name),
    ]
    return 'the catalogue of keystone has no endpoint of %s' % ', '.join(
        '%s %s' % one for one in wanted if one[1]
    )
