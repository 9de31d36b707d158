/// A port of 127.0.0.1 that was free a moment ago. It is none of those that the kernel gives to connections and to listeners that ask
/// for any, so that no other program gets it before the test uses it.
package func freePort() async throws -> Int {
    for _ in 0..<20 {
        let port = Int.random(in: 10_240..<20_000)
        let found = try await Command.python(
            "import socket, sys; socket.create_server(('127.0.0.1', int(sys.argv[1])))", String(port))
        if found.status == 0 { return port }
        guard found.errors.contains("Address already in use") else { throw NoFreePort(errors: found.errors) }
    }
    throw NoFreePort(errors: "all that were tried are in use")
}

private struct NoFreePort: Error {
    var errors: String
}
