"""Tests of the quality figures of an index."""
