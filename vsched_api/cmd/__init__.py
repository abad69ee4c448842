# SPDX-License-Identifier: Apache-2.0

"""Commands of the API and the collector."""

import warnings

# Libraries still load eventlet where it is installed, which prints this
# warning at every start. vsched uses native threads.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
