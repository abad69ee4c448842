# SPDX-License-Identifier: Apache-2.0

"""What requests and answers say of the servers that instances are."""

from vsched_api.schemas import fields
from vsched_api.schemas import shapes

PROJECT = fields.described(
    fields.WORD,
    'Only those of this project. An instance of which hosts report different '
    'projects, or one does not report any, is of none.',
)
NAME = fields.described(
    fields.NAME, "Only those of servers with this name, as the project's own."
)
FLAVOR = fields.described(
    fields.NAME,
    'Only those of servers of the flavor with this name, as in '
    '``flavor_name``.',
)

#: Of everything that is about one instance.
FIELDS = {
    'server_name': shapes.optional(
        shapes.string(
            'The name of the server, as its owner chose it. ``null``, as the '
            "project and the flavor, without Nova's metadata."
        )
    ),
    'project_id': shapes.optional(
        shapes.string('The project that it belongs to.')
    ),
    'flavor_name': shapes.optional(shapes.string('The name of its flavor.')),
}

_HIDDEN = (
    '``null`` for those whom the policy ``vsched:instances:show_host`` does '
    'not allow to see it.'
)


def hidden(schema: fields.Schema) -> fields.Schema:
    """Return the schema of a field that only those who see hosts get."""
    return shapes.optional(schema, '%s %s' % (schema['description'], _HIDDEN))
