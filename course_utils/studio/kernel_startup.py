"""What a kernel of the course runs first, in the reader's own namespace: it leaves no name there."""

try:
    from course_utils.studio.kernel import describe_language, spare_the_compiler
except ImportError:  # the kernel of another environment
    pass
else:
    spare_the_compiler()
    describe_language()
    del spare_the_compiler, describe_language
