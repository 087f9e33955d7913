"""Diagnosis of a root's models: checks by small requests, settings to change, and a forecast of the next run."""
