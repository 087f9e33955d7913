"""Groups of routes: each module declares `ROUTES`, with models of requests and answers, and the functions behind them.

Keep out: HTTP, which is in `endpoint.py` and `gate.py`.
"""
