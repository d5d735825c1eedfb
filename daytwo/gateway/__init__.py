"""What nodes speak to: who are you, what did you see, what are you asked. Stateless; any number may run."""
