"""ELF files: the reader, references to device code, and the cutting that makes a file shorter."""
