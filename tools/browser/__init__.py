"""The pages that the library writes, looked at in a real browser: ``make browser``."""
