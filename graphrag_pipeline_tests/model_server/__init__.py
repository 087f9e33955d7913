"""A model endpoint for tests: real HTTP on loopback, OpenAI's protocol, replies by rule or by script, faults on demand.

    with running_model_server(faults={"429": 0.1}, latency_s=0.05) as server:
        client = OpenAI(base_url=server.base_url, api_key="any")
        ...
    assert server.count("extraction") == 3

A reply is a function of the request; a fault is a function of (seed, request, how often it was asked before): neither
depends on the order of arrival, so a run repeats itself under concurrency and a retried call can succeed. A request is
the same when endpoint, model and body bytes are. Prompts: `brains.py` tells what is recognised; faults: `faults.py`.
For a newcomer without a key: `python -m graphrag_pipeline_tests.model_server --port 8089`.
"""

from graphrag_pipeline_tests.model_server.faults import Fault
from graphrag_pipeline_tests.model_server.records import Asked, Call
from graphrag_pipeline_tests.model_server.running import running_model_server
from graphrag_pipeline_tests.model_server.server import ModelServer, ServerSettings
from graphrag_pipeline_tests.model_server.shapes import Reply

__all__ = ["Asked", "Call", "Fault", "ModelServer", "Reply", "ServerSettings", "running_model_server"]
