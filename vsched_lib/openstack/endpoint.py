# SPDX-License-Identifier: Apache-2.0

"""Check that a service responds to a client with certain options."""

from keystoneauth1 import adapter as adapters
from keystoneauth1 import exceptions


def problem(adapter: adapters.Adapter, path: str) -> str | None:
    """Return why a client gets no response; None when it gets one.

    :param adapter: has the client's options: the authentication, and the
        endpoint of the service catalogue.
    :param path: path of the request; the body of the response is not read.
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
    requested = [
        ('service type', adapter.service_type),
        ('service name', adapter.service_name),
        ('interface', interface),
        ('region', adapter.region_name),
    ]
    return 'the catalogue of keystone has no endpoint of %s' % ', '.join(
        '%s %s' % one for one in requested if one[1]
    )
