"""What the workflows ask of the world: one thin file per outside system."""
