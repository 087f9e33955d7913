"""Prompts tuned to the corpus: a model writes them from a sample, rules check them, the user compares and adopts them.

Data flows from the sample (`sampling.py`) to what the model writes about it (`requests.py`), to prompt files
(`tuner.py`), to a comparison (`comparison.py`), to the settings (`adoption.py`).
"""
