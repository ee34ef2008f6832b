//! The command line: a file per subcommand. Data goes to stdout, everything else to stderr.
