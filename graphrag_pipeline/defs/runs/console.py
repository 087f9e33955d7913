"""The lines of runs on the terminal: a failure that our words explain is shown in words, without stack frames.

Dagster appends the stack of an error to the line of its event; the page of the run keeps it. Dagster itself makes the
logger of the terminal, of Python's class for new loggers, so that class is the place for it. Keep out: the words
(`errors.py`).
"""

import logging

from graphrag_pipeline.defs.runs.errors import is_explained

_STACK = "\n\n"


class WordsLogger(logging.Logger):
    """A logger that drops the stack from lines of Dagster's events whose error is explained."""

    def handle(self, record: logging.LogRecord) -> None:
        """Shorten a record of Dagster, and handle it."""
        event = (getattr(record, "dagster_meta", None) or {}).get("dagster_event")
        error = getattr(event.event_specific_data, "error", None) if event else None
        if error and is_explained(error):
            words = " ".join(error.message.partition(": ")[2].split())
            record.msg = f"{str(record.msg).partition(_STACK)[0]} {words}"
        super().handle(record)


def show_failures_in_words() -> None:
    """Let loggers that this process makes from now on show explained failures in words."""
    logging.setLoggerClass(WordsLogger)
