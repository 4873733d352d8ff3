"""Which state of data/translation the tests beside this file have passed: they run again when it changes.

`make data` runs them, and then this file, which notes the state.
"""

import hashlib

from course_utils.files import ROOT, atomic_write

NOTE = ROOT / "data" / "translation" / "checked.txt"


def state() -> str:
    """A digest of the sentences, the lexicon, the builder and its tests."""
    digested = hashlib.sha256()
    for folder in ("data/translation", "tests/builders"):
        files = (path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".tsv"))
        for path in sorted(files):
            digested.update(path.name.encode() + path.read_bytes())
    return digested.hexdigest()


def is_checked() -> bool:
    """Whether nothing has changed since the tests passed."""
    return NOTE.is_file() and NOTE.read_text().split() == [state()]


if __name__ == "__main__":
    with atomic_write(NOTE) as part:
        part.write_text(state() + "\n")
