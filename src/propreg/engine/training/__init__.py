"""The training loop and everything that changes while it runs."""
