"""Recurrent layers over a whole sequence."""
