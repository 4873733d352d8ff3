"""The authors' tools, which make, check, publish and hand out the course: `python -m course_utils.studio`.

manifest, paths                           `book.toml`: the chapters, and the paths through them
notebook_files, content, rules, notebooks a chapter's source and notebook, what stands in them, rules, making one
course_map, place, tables, subset         the map, where a reader is, tables, a course that leaves chapters out
book, teaching                            the book; slides, and questions for a learning platform
handout, graders, written                 what students get, what an instructor grades; a folder written anew
lab, saving, kernel, lazy_compiler        JupyterLab on the start page, and its kernels
runs, parameter_sweep, first_states       stored runs, other numbers in a chapter, a live model's first picture
"""


class StudioError(RuntimeError):
    """An error that a command prints as a sentence, without a traceback."""
