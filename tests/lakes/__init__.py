"""Lakes as earlier releases left them, opened by every later one (README.md)."""
