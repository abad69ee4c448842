# SPDX-License-Identifier: Apache-2.0

"""What the answer with the OpenAPI document is."""

from vsched_api.schemas import shapes

SHOW = shapes.anything('An OpenAPI document, version 3.1.')
