"""What happened and what it adds up to: records, journals, the fold, blobs."""
