import FileProvider
import SystemPackage
import TestSupport
import Testing

@testable import HTTPTransport

@Suite(.tags(.server)) struct TransportFailureTests {
    @Test(
        "ERROR-7: what this machine has run out of is not the server's failure",
        arguments: [Errno.tooManyOpenFiles, .tooManyOpenFilesInSystem, .noMemory, .noBufferSpace])
    func shortages(errno: Errno) {
        let failure = TransportFailure(errno, host: "server.example")
        #expect(failure.error.code == .posix)
        #expect(failure.error.errno == errno)
        #expect(failure.error.code.reaction == .retry)
        #expect(!failure.error.message.contains("server.example"))
    }

    @Test("ERROR-7: a refused connection is the server's failure") func refused() {
        #expect(TransportFailure(Errno.connectionRefused, host: "server.example").error.code == .serverUnreachable)
    }
}
