"""What the atlas is made of: claims, entries, running them, their pictures and their sources."""
