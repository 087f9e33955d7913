"""OpenAI-compatible routes: models and chat completions, for OpenAI's clients and chat front ends.

A model is a root and a search method, as `root:method`. Keep out: searching.
"""
