"""Helpers that tests share: small indexes, roots, servers, browsers and generators. No tests here."""
