"""How fast, how small: wheelslim beside what people do today (docs/performance.md)."""
