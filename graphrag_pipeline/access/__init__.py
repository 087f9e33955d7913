"""Permissions: who may read which part of which root, the views that restricted principals read, and the audit log.

Keep out: HTTP (`serve/`) and commands (`commands/serving.py`).
"""
