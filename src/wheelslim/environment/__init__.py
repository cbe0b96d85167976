"""Installed environments and other directory trees, slimmed where they lie."""
