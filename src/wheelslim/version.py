"""The version of wheelslim."""

VERSION = "0.1.0"
