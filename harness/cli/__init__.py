"""The command `harness`; each subcommand imports only what it needs: `harness credit` no torch."""
