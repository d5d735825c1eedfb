"""What the agent looks at. Each check turns what was read into changes of findings and a state of its own."""
