"""The startup file of a course kernel. It runs in the reader's own namespace and leaves no name there."""

try:
    from course_utils.studio.kernel import set_language_info
    from course_utils.studio.lazy_compiler import defer_compiler_import
except ImportError:  # the kernel of another environment
    pass
else:
    defer_compiler_import()
    set_language_info()
    del defer_compiler_import, set_language_info
