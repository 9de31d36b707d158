// An S3 bucket as the remote.
