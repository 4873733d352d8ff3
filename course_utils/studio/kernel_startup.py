"""What a kernel of the course runs first, in the reader's own namespace: it leaves no name there."""

try:
    from course_utils.studio.kernel import defer_compiler_import, set_language_info
except ImportError:  # the kernel of another environment
    pass
else:
    defer_compiler_import()
    set_language_info()
    del defer_compiler_import, set_language_info
