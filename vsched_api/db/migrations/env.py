# SPDX-License-Identifier: Apache-2.0

"""Run migrations on the connection that the caller opened."""

from alembic import context

from vsched_api.db import models
from vsched_api.db import resuming

context.configure(
    connection=context.config.attributes['connection'],
    target_metadata=models.Base.metadata,
    # SQLite can not alter a table: alembic copies it instead.
    render_as_batch=True,
)
resuming.prepare(context.get_context())

with context.begin_transaction():
    context.run_migrations()
