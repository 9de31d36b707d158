// A WebDAV server as the remote.
