"""What the service answers: the models of the API, which are also the CLI's JSON. Fields are only ever added."""
