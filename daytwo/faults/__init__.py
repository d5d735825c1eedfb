"""What can go wrong with a GPU node: parsers and the catalogue. Standard library only: the agent carries it along."""
