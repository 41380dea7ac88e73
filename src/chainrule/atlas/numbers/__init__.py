"""Tables and closed forms with numbers."""
