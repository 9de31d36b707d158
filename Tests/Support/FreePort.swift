/// A port of 127.0.0.1 that was free a moment ago.
package func freePort() async throws -> Int {
    let found = try await Command.python(
        "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1])")
    guard let port = Int(found.line) else { throw NoFreePort(errors: found.errors) }
    return port
}

private struct NoFreePort: Error {
    var errors: String
}
