import Testing

@testable import SFTPProvider

@Suite struct SFTPMessageTests {
    @Test("a handle is as long as the draft allows, and no longer", arguments: [0, 256, 257, 1 << 19])
    func handles(length: Int) throws {
        var writer = SFTPWriter()
        writer.append([UInt8](repeating: 7, count: length))
        let reply = SFTPReply(type: SFTPMessage.handle, identifier: 1, body: writer.bytes)
        let handle = try? reply.handle()
        #expect(handle?.count == (length <= 256 ? length : nil))
    }
}
