"""A stand-in for a language model: it answers prompts of an index and of questions by rule, for trying things only.

`app.py` speaks OpenAI's protocol over `requests.py` and `shapes.py`. `replies.py` lists the prompts that are recognized
and how each is answered. A reply depends on the request only. The tests' server answers by the same rules.

Keep out: imports of the rest of the package, so that a stand-in never shares an error with the client that it answers;
faults, keys, limits and scripts, which are the tests' own.
"""
