"""What daytwo knows and decides, without touching anything: words, policy, triage, tables, messages."""
