"""The one exception that bad input raises."""


class DecodeError(ValueError):
    """Input that cannot be decoded; its text is one sentence: what is wrong and what to do."""
