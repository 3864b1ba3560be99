"""Graphs with features and labels: reading, checking and describing them.

Every reader raises :class:`~propreg.data.errors.DataError` for data that are missing, damaged, hostile or another
dataset than they should be; the message names the file, the problem and the fix.
"""
