"""The command line: one thin file per command; the only place for printing and exit codes."""
