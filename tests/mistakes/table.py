"""A row of a table of mistakes."""

from collections.abc import Callable


class wrong:
    """A mistake in one expression; `what` says which one, as the docstring of a longer one does."""

    def __init__(self, what: str, function: Callable):
        self.what, self.function = what, function

    def __set_name__(self, owner: type, name: str):
        self.function.__name__, self.function.__doc__ = name, self.what
        setattr(owner, name, self.function)
