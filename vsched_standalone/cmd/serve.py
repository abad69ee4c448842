# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""vsched-standalone: the whole of vsched in one process."""

from collections.abc import Sequence
import os
import sys

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import backend

# oslo.service chooses eventlet unless told before its first use.
backend.init_backend(backend.BackendType.THREADING)

from oslo_service import service as oslo_service  # noqa: E402
import pbr.version  # noqa: E402

from vsched_standalone import conf as standalone_conf  # noqa: E402
from vsched_standalone import service  # noqa: E402


def main(argv: Sequence[str] | None = None) -> int:
    """The command's entry point; returns its exit code."""
    conf = cfg.ConfigOpts()
    standalone_conf.register_opts(conf)
    standalone_conf.set_defaults(conf, '/var/lib/vsched')
    conf(list(sys.argv[1:] if argv is None else argv), project='vsched',
         prog='vsched-standalone',
         version=pbr.version.VersionInfo('vsched').version_string())
    logging.setup(conf, 'vsched-standalone')
    os.makedirs(conf.agent.state_path, mode=0o750, exist_ok=True)
    launcher = oslo_service.launch(conf, service.Standalone(conf))
    launcher.wait()
    return 0


if __name__ == '__main__':
    sys.exit(main())
