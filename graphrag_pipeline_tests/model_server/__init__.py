"""A model endpoint for tests: real HTTP on loopback, OpenAI's protocol, replies by rule or by script, faults on demand.

    with running_model_server(faults={"429": 0.1}, latency_s=0.05) as server:
        client = OpenAI(base_url=server.base_url, api_key="any")
        ...
    assert server.count("extraction") == 3

A reply depends on the request only. A fault depends on the seed, the request and the number of its attempt. Neither
depends on the order of arrival, so concurrent runs are reproducible and a retried call can succeed. Requests are equal
if endpoint, model and body bytes are equal. The rules are those of the demo model: `replies.py` of its package lists
the prompts that are recognized. `faults.py` lists the faults and bad habits, `dialects.py` the servers whose refusals
are imitated.

Benchmarks run `python -m graphrag_pipeline_tests.model_server`. Without an API key, `graphrag-pipeline demo-model` is
for trying the model engine.
"""

from graphrag_pipeline_tests.model_server.faults import Fault
from graphrag_pipeline_tests.model_server.records import Call, ReceivedRequest
from graphrag_pipeline_tests.model_server.running import running_model_server
from graphrag_pipeline_tests.model_server.server import ModelServer, ServerSettings
from graphrag_pipeline_tests.model_server.shapes import Reply

__all__ = ["Call", "Fault", "ModelServer", "ReceivedRequest", "Reply", "ServerSettings", "running_model_server"]
