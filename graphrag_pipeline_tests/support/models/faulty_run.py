"""A separate process to be killed: it sends numbered questions to a model and prints the replies.

    python -m graphrag_pipeline_tests.support.models.faulty_run BASE_URL FOLDER N_QUESTIONS

Prints one line per answered question, after its reply was stored; the questions are `question 0`, `question 1`, ...
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from graphrag_pipeline.models.pool import Work, run_all
from graphrag_pipeline.models.ports import ChatReply
from graphrag_pipeline_tests.support.models.model_clients import ask, chat_model


def main(base_url: str, folder: Path, n_questions: int) -> None:
    logging.basicConfig(level=logging.DEBUG)
    chat = chat_model(base_url, folder, max_concurrency=4)

    async def answer(number: int) -> ChatReply[str]:
        reply = await chat.complete(ask(f"question {number}"))
        print(f"question {number}", flush=True)
        return reply

    run_all("extraction", [Work(str(number), lambda number=number: answer(number)) for number in range(n_questions)], 4)
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
