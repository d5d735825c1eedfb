"""A simulated fleet: what the demonstration and the tests of the whole path run on."""
