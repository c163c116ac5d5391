# What heapr says of the machine.
heapr doctor || true
heapr --version
