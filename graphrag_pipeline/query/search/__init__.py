"""The search methods: local, global, basic, drift, lazy and auto."""
