"""Original against slimmed, proved. Shares no code with what plans and writes the slimmed one.

Only the readers are common: ``library``, ``elf.reader`` and ``fatbin.reader``.
"""
