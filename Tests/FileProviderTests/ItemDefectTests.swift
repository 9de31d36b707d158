import FileProvider
import Testing

@Suite struct ItemDefectTests {
    private func file(_ change: (inout FileProviderItem) -> Void = { _ in }) -> FileProviderItem {
        var item = FileProviderItem(
            itemIdentifier: "id", parentItemIdentifier: .rootContainer, filename: "name", kind: .file,
            itemVersion: ItemVersion(contentVersion: "1", metadataVersion: "1"), documentSize: 0)
        change(&item)
        return item
    }

    @Test(arguments: ["a", " ", "...", ".hidden", "a\nb", "\u{1F600}", "e\u{301}", String(repeating: "x", count: 255)])
    func ordinaryNamesAreValid(name: String) {
        #expect(file { $0.filename = name }.defect == nil)
    }

    @Test(arguments: [
        "", ".", "..", "a/b", "/", "nul\0", String(repeating: "x", count: 256), String(repeating: "\u{E9}", count: 128),
    ])
    func namesThatLinuxDoesNotAllowAreDefects(name: String) {
        #expect(file { $0.filename = name }.defect != nil)
    }

    @Test func rootNameIsNotValidated() {
        #expect(file { ($0.itemIdentifier, $0.filename, $0.kind) = (.rootContainer, "/", .directory) }.defect == nil)
    }

    @Test func identifiersAndVersionsHaveMaximumLengths() {
        #expect(file { $0.itemIdentifier = "" }.defect != nil)
        #expect(file { $0.itemIdentifier = ItemIdentifier(String(repeating: "x", count: 1024)) }.defect == nil)
        #expect(file { $0.itemIdentifier = ItemIdentifier(String(repeating: "x", count: 1025)) }.defect != nil)
        #expect(file { $0.itemVersion.contentVersion = [UInt8](repeating: 0, count: 128) }.defect == nil)
        #expect(file { $0.itemVersion.contentVersion = [UInt8](repeating: 0, count: 129) }.defect != nil)
        #expect(file { $0.itemVersion.metadataVersion = [UInt8](repeating: 0, count: 129) }.defect != nil)
    }

    @Test("NAME-6: no item has an identifier of the system, or the working set as its parent")
    func identifiersOfTheSystemAreDefects() {
        for identifier in [ItemIdentifier.workingSet, .trashContainer] {
            #expect(file { $0.itemIdentifier = identifier }.defect != nil)
        }
        #expect(file { $0.parentItemIdentifier = .workingSet }.defect != nil)
        #expect(file { $0.parentItemIdentifier = .trashContainer }.defect == nil)
        #expect(file { ($0.itemIdentifier, $0.parentItemIdentifier) = (.rootContainer, .workingSet) }.defect == nil)
    }

    @Test func aFileHasASize() {
        #expect(file { $0.documentSize = nil }.defect != nil)
        #expect(file { $0.documentSize = -1 }.defect != nil)
        #expect(file { $0.documentSize = 1 << 62 }.defect == nil)
        #expect(file { $0.documentSize = (1 << 62) + 1 }.defect != nil)
        #expect(file { $0.documentSize = .max }.defect != nil)
        #expect(file { ($0.kind, $0.documentSize) = (.directory, nil) }.defect == nil)
    }

    @Test func aLinkHasATarget() {
        func link(_ target: String?) -> FileProviderItem {
            file { ($0.kind, $0.symlinkTargetPath) = (.symbolicLink, target) }
        }
        #expect(link("../anywhere").defect == nil)
        #expect(link(nil).defect != nil)
        #expect(link("").defect != nil)
        #expect(link("a\0b").defect != nil)
        #expect(link(String(repeating: "x", count: 4095)).defect == nil)
        #expect(link(String(repeating: "x", count: 4096)).defect != nil)
    }
}
