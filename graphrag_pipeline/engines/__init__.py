"""The two engines of this package; nothing outside imports them, `ports.load_port` loads them by their entry points."""
