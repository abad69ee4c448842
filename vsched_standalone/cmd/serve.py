# SPDX-License-Identifier: Apache-2.0

"""vsched-standalone: API, collector and agent in one process."""

from collections.abc import Sequence
import os
import sys

from oslo_log import log as logging
from oslo_service import backend

# oslo.service selects eventlet unless another backend is set before.
backend.init_backend(backend.BackendType.THREADING)

from oslo_service import service as oslo_service  # noqa: E402
import pbr.version  # noqa: E402

from vsched_lib import command_line  # noqa: E402
from vsched_standalone import conf as standalone_conf  # noqa: E402
from vsched_standalone import service  # noqa: E402


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    conf = command_line.Options()
    standalone_conf.register_opts(conf)
    standalone_conf.set_defaults(conf, '/var/lib/vsched')
    conf(
        list(sys.argv[1:] if argv is None else argv),
        project='vsched',
        prog='vsched-standalone',
        version=pbr.version.VersionInfo('vsched').version_string(),
    )
    logging.setup(conf, 'vsched-standalone')
    os.makedirs(conf.agent.state_path, mode=0o750, exist_ok=True)
    launcher = oslo_service.launch(conf, service.Standalone(conf))
    launcher.wait()
    return 0


if __name__ == '__main__':
    sys.exit(main())
