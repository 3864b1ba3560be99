"""The one exception of the data package."""


class DataError(ValueError):
    """Data that cannot be used as it is: the message says which file, what is wrong and what fixes it."""
