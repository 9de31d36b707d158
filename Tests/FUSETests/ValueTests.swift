import FUSE
import Testing

struct ValueTests {
    @Test func namesAreBytes() {
        #expect(FileName("\u{e9}") != FileName("e\u{301}"))
        #expect(FileName("\u{e9}").text == "\u{e9}")
        #expect(FileName(FileName(bytes: [0xff]).text).bytes == [0xff])
    }

    @Test func modes() {
        let attributes = FileAttributes(node: NodeID(2), kind: .directory, permissions: 0o1755)
        #expect(attributes.mode == 0o041755)
        #expect(FileKind(mode: 0o100644) == .regular)
        #expect(FileKind(mode: 0o644) == nil)
    }

    @Test func openFlags() {
        #expect(OpenFlags(rawValue: 0).canRead && !OpenFlags(rawValue: 0).canWrite)
        #expect(!OpenFlags(rawValue: 1).canRead && OpenFlags(rawValue: 1).canWrite)
        #expect(OpenFlags(rawValue: 2).canRead && OpenFlags(rawValue: 2).canWrite)
        // O_DSYNC and O_SYNC
        #expect(OpenFlags(rawValue: 0o10_001).isSynchronous && OpenFlags(rawValue: 0o4_010_001).isSynchronous)
        #expect(!OpenFlags(rawValue: 0o2001).isSynchronous)
    }
}
