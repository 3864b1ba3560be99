"""File formats, read without trusting a byte."""
