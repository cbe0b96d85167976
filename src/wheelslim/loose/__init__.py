"""Device code in files of its own: cubins, fatbins, PTX, and libraries that name their architecture."""
