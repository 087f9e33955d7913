"""Texts, graphs and small indexes with known content, literal or generated."""
