"""The processes of daytwo, one per file, each with a `main()`."""
