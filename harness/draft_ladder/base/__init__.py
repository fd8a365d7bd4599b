"""What every package stands on: errors, files, manifests, locks, validation, native modules."""
