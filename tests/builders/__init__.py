"""Readable byte builders. They restate the formats and share no code with wheelslim."""
