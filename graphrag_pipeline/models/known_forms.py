"""The form of structured outputs that each model accepts, kept with the stored replies for later commands.

Only a form other than the first one is kept, so a model without an entry is asked in the first form. Keep out: what
the forms are and how one is found (`endpoints/reply_forms.py`).
"""

from __future__ import annotations

from concurrent.futures import Future

from sqlalchemy import Connection, delete, select

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.database import REPLY_FORMS, SharedDatabase


class KnownForms:
    """Names of forms, by base URL and model."""

    def __init__(self, database: SharedDatabase) -> None:
        self._database = database

    def read(self, base_url: str, model: str) -> str | None:
        """Return the form that a model accepts; None if it is not known."""
        is_of = REPLY_FORMS.c.model_key == _key_of(base_url, model)
        rows = self._database.read(select(REPLY_FORMS.c.form).where(is_of))
        return rows[0][0] if rows else None

    def write(self, base_url: str, model: str, form: str | None) -> Future[None]:
        """Keep the form that a model accepts, or forget it; the future is done when the change is committed.

        Args:
            form: None forgets the model, which is then asked in the first form.
        """
        key = _key_of(base_url, model)

        def change(connection: Connection) -> None:
            connection.execute(delete(REPLY_FORMS).where(REPLY_FORMS.c.model_key == key))
            if form is not None:
                connection.execute(self._database.insert(REPLY_FORMS).values(model_key=key, form=form))

        return self._database.submit(change)


def _key_of(base_url: str, model: str) -> str:
    return stable_hash("reply form", base_url.rstrip("/"), model)
