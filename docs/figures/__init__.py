"""The documentation's own pictures: one module each, with ``data`` that computes and ``draw`` that draws."""
