import FileProvider
import Testing

@testable import FileProviderTesting

@Suite struct ItemDifferencesTests {
    @Test("The conformance suite names the fields in which two items differ, and no others") func names() {
        let item = FileProviderItem(
            itemIdentifier: "17", parentItemIdentifier: .rootContainer, filename: "a", kind: .file,
            itemVersion: ItemVersion(contentVersion: "one", metadataVersion: "3"), documentSize: 12, permissions: 0o644)
        var other = item
        other.itemVersion.contentVersion = Array("two".utf8)
        other.documentSize = nil
        #expect(
            item.differences(from: other)
                == "contentVersion 'one' instead of 'two', documentSize '12' instead of nil")
        other = item
        other.creationDate = FileTimestamp(nanosecondsSince1970: 7)
        other.extendedAttributes = ["user.b": Array("2".utf8), "user.a": Array("1".utf8)]
        #expect(
            other.differences(from: item)
                == "creationDate '7 ns' instead of nil, extendedAttributes {user.a='1' user.b='2'} instead of nil")
    }
}
