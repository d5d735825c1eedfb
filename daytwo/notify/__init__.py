"""Ways to tell people; each implements `daytwo.domain.seams.Notifier`."""
