"""One module a verb of the command line: it unpacks options and calls one library function."""
