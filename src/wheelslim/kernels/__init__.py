"""Kernels by name: which ones a container holds, and which containers go for that."""
