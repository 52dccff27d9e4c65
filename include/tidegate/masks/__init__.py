"""Masks of values before silver, and their keys."""
