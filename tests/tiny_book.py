"""The manifest of a course that a test makes for itself."""


def book(*stems: str) -> str:
    """The text of a book.toml with chapters of these names, the title behind the number."""
    chapters = "".join(
        f'[[chapter]]\nnotebook = "{stem}"\ntitle = "{stem[3:].capitalize()}"\n\n' for stem in stems
    )
    course = 'title = "Tiny"\nauthors = []\nlicense = "MIT"\nrepository = ""'
    return f"[course]\n{course}\n\n{chapters}"
