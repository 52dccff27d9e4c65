"""The other programs that do a part of tidegate's work: had from public repositories, or left out by name."""
