"""The service for people: the one way to read what daytwo knows and to decide. CLI and console are its clients."""
