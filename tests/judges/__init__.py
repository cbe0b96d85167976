"""Outside judges: programs that are not ours look at what wheelslim made.

A judge that is not installed skips the test with the reason.
"""
