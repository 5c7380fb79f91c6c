"""Whether servers can be left running, asked in three ways.

- `one_server.py` (with `players`) plays thousands of episodes on one server of any environment and
  measures the memory of it and of a child process by episodes, and what sessions that clients have
  abandoned leave.
- `under_faults.py` (with `services`, `clients`, `faults` and `figures`) plays on servers of eight
  environments at once for hours while things go wrong, and compares every turn with the same one
  played in its own process.
- `under_faults.py --gateway` (with `gateway` and `gateway_...`) lets agents play through a gateway
  of a policy in training that is killed and goes on, and compares what is learned with what they
  reported.
"""
