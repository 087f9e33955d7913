"""Sensors, schedules and notifications: everything that starts or reports runs without the user."""
