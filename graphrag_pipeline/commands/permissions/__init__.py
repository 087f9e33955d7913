"""Commands for permissions, beside `serve`. Keep out: rules and views (`access/`)."""
