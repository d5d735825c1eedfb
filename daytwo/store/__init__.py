"""The store: tables, how it is opened, the audit chain."""
