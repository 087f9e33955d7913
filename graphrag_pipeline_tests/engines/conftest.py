"""Indexes that the tests of queries and of answers share."""

from graphrag_pipeline_tests.support.asked_indexes import carol, carol_root, german, small, story

__all__ = ["carol", "carol_root", "german", "small", "story"]
