// How providers speak HTTP: connections, retries, redirects, limits.
