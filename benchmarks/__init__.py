"""The benchmarks: one command (`make bench`), one report. README.md in this folder says how to read it."""
