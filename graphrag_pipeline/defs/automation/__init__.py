"""Sensors, schedules, observable sources and notifications: what starts a run without a person."""
