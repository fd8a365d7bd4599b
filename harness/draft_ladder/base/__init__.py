"""What every room stands on: errors, files, manifests, locks, validation, native modules."""
