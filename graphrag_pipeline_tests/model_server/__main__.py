"""Command `python -m graphrag_pipeline_tests.model_server`: the tests' model server, for benchmarks.

It prints its address when it listens, and a summary of its requests when it is stopped (Ctrl-C).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys

from graphrag_pipeline_tests.model_server.dialects import DIALECTS, FORMATS
from graphrag_pipeline_tests.model_server.faults import parse_fault_rates
from graphrag_pipeline_tests.model_server.server import ModelServer, ServerSettings


def main(arguments: list[str] | None = None) -> int:
    """Serve until interrupted; 1 if the port is taken."""
    options = _parse(arguments)
    settings = ServerSettings(
        latency_s=options.latency_ms / 1000,
        faults=options.faults,
        seed=options.seed,
        dimensions=options.dimensions,
        api_key=options.api_key,
        hang_s=options.hang_s,
        keep_bodies=False,
        max_context_tokens=options.max_context_tokens,
        max_input_tokens=options.max_input_tokens,
        n_slots=options.n_slots,
        tokens_per_s=options.tokens_per_s,
        dialect=options.dialect,
        refused_formats=tuple(options.refuse_format),
    )
    server = ModelServer(settings)
    try:
        asyncio.run(_serve(server, options.port))
    except OSError as error:
        print(f"model server: port {options.port} cannot be used: {error.strerror}; choose another", file=sys.stderr)
        return 1
    print(json.dumps(server.log.summary(), indent=2))
    return 0


async def _serve(server: ModelServer, port: int) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.serve(port, stop, lambda: print(f"Model server on {server.base_url} (Ctrl-C stops it)", flush=True))


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="model_server", description="A model that answers by rule.")
    parser.add_argument("--port", type=int, default=8089, help="0 picks a free one")
    parser.add_argument("--latency-ms", type=float, default=0)
    parser.add_argument("--faults", type=_fault_rates, default={}, help="such as 429=0.1,500=0.05,hang=0.02")
    parser.add_argument("--seed", type=int, default=0, help="of the faults")
    parser.add_argument("--dimensions", type=int, default=256, help="of embeddings")
    parser.add_argument("--hang-s", type=float, default=60, help="how long a hang lasts at most")
    parser.add_argument("--max-context-tokens", type=int, help="window of the chat model")
    parser.add_argument("--max-input-tokens", type=int, help="of one text to embed")
    parser.add_argument("--n-slots", type=int, help="requests worked on at once; the others wait")
    parser.add_argument("--tokens-per-s", type=float, help="speed of generation")
    parser.add_argument("--dialect", choices=DIALECTS, default="openai", help="how requests are refused")
    parser.add_argument("--refuse-format", choices=FORMATS, action="append", default=[], help="of structured outputs")
    parser.add_argument("--api-key", help="refuse requests with another key")
    return parser.parse_args(arguments)


def _fault_rates(text: str) -> dict[str, float]:
    try:
        return parse_fault_rates(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


if __name__ == "__main__":
    sys.exit(main())
