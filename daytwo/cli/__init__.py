"""The command `daytwo`: a thin client of the service. Nothing here knows how anything is done."""
