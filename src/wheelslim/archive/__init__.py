"""Containers of files: wheels, conda packages, directory trees, single files."""
