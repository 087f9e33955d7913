"""Evaluation of an index: recall on gold questions, generated questions, answers judged in pairs, a regression gate."""
