# SPDX-License-Identifier: Apache-2.0

"""Commands."""

import warnings

# Our libraries still load eventlet where it is installed, and it says so on
# every start. vsched runs on native threads.
warnings.filterwarnings('ignore', message=r'\s*Eventlet is deprecated')
