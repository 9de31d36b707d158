import FileProvider

/// Checks of creation: items are stored exactly once, and existing names are not overwritten.
extension ProviderConformance.Subject {
    /// Verifies that the remote has exactly this item, in lookups and listings.
    func expectStored(
        _ stored: ProviderSession.Stored, at path: String, _ content: [UInt8]? = nil
    ) async throws {
        let listed = try await session.find(path)
        try expect(listed, equals: stored.item, "'\(path)' is listed otherwise than it was answered")
        let looked = try await session.item(stored.item.itemIdentifier)
        try expect(looked, equals: stored.item, "'\(path)' is looked up otherwise than it was answered")
        if let content {
            let version = stored.item.itemVersion.contentVersion
            try await expectContent(
                content, of: stored.item.itemIdentifier, version: version, "after the upload of '\(path)'")
        }
    }

    func checkNewItems() async throws {
        let directory = try await session.create(ProviderSession.template("directory", kind: .directory))
        try expect(directory.item.kind == .directory, "a new directory is a \(directory.item.kind)")
        try await expectStored(directory, at: "directory")
        let inside = directory.item.itemIdentifier
        let content = RemoteContent.pattern(size: (1 << 20) + 77, seed: 3)
        let bytes = content[0..<content.size]
        let file = try await session.create(ProviderSession.template("file", in: inside), content: bytes)
        try expect(file.item.documentSize == content.size, "a new file has \(file.item.documentSize ?? -1) bytes")
        try await expectStored(file, at: "directory/file", bytes)
        for (name, nothing) in [("none", nil), ("empty", [])] as [(String, [UInt8]?)] {
            let empty = try await session.create(ProviderSession.template(name, in: inside), content: nothing)
            try await expectStored(empty, at: "directory/\(name)", [])
        }
        let made = try await session.createLink("link", in: inside, to: "../not/there")
        if let made {
            try expect(made.item.symlinkTargetPath == "../not/there", "a link leads to another target")
            try await expectStored(made, at: "directory/link")
        }
        try await expectNames(
            ["empty", "file"] + (made == nil ? [] : ["link"]) + ["none"], in: inside, "of a new directory")
        let nowhere = ProviderSession.template("file", in: "there-is-no-such-item")
        try await expect(.noSuchItem, from: "making a file in an unknown directory") {
            _ = try await session.create(nowhere, content: [1])
        }
    }

    func checkNames() async throws {
        let names = [
            String(repeating: "n", count: 255), String(repeating: "é", count: 127), " leading and trailing ",
            "new\nline", "tab\tand\u{7F}", "quote'\"back\\slash", "-rf", "...", "* ? [a] $HOME `id` ;&|", "caf\u{E9}",
            "cafe\u{301}", "👩‍👩‍👧‍👦", "%2F%00", ".hidden", "~",
        ]
        for (number, name) in names.enumerated() {
            let bytes = [UInt8](repeating: UInt8(number), count: number)
            let file = try await session.create(ProviderSession.template(name), content: bytes)
            try expect(file.item.filename.utf8.elementsEqual(name.utf8), "'\(name)' becomes '\(file.item.filename)'")
        }
        let listed = try await session.list()
        try expect(listed.count == names.count, "\(listed.count) of \(names.count) odd names are listed")
        for (number, name) in names.enumerated() {
            let item = try await session.find(name)
            try await expectContent(
                [UInt8](repeating: UInt8(number), count: number), of: item.itemIdentifier, "of the file '\(name)'")
        }
        for name in ["", ".", "..", "a/b", "nul\0", String(repeating: "n", count: 256)] {
            try await expect(.cannotSynchronize, from: "making '\(name)'") {
                _ = try await session.create(ProviderSession.template(name), content: [1])
            }
        }
    }

    func checkRepeatedCreation() async throws {
        var templates: [(FileProviderItem, [UInt8]?)] = [
            (ProviderSession.template("file"), Array("content".utf8)),
            (ProviderSession.template("empty"), nil),
            (ProviderSession.template("directory", kind: .directory), nil),
        ]
        if let link = try await session.createLink("a link", to: "file") {
            try await session.delete(link.item)
            templates.append((ProviderSession.template("link", kind: .symbolicLink, target: "file"), nil))
        }
        for (template, content) in templates {
            let name = template.filename
            let first = try await session.create(template, content: content)
            let second = try await session.create(template, content: content, options: .mayAlreadyExist)
            try expect(
                first.item.itemIdentifier == second.item.itemIdentifier, "'\(name)' made again is another item")
            try expect(
                first.item.itemVersion.contentVersion == second.item.itemVersion.contentVersion,
                "'\(name)' made again has another version")
            try await expectStored(second, at: name, template.kind == .file ? content ?? [] : nil)
        }
        let items = try await session.list()
        try expect(items.count == templates.count, "made twice, \(templates.count) items are \(items.count)")
        // Only an equal item is recognized.
        let there = try await session.find("file")
        try await expect(.filenameCollision, from: "making a file where a different one is") {
            let other = ProviderSession.template("file")
            _ = try await session.create(other, content: Array("another".utf8), options: .mayAlreadyExist)
        }
        try await expectContent(Array("content".utf8), of: there.itemIdentifier, "after a collision")
    }

    func checkCollisions() async throws {
        try await remote.write(Array("there".utf8), to: "taken")
        try await remote.makeDirectory("directory")
        let taken = try await session.find("taken")
        let templates: [(FileProviderItem, [UInt8]?)] = [
            (ProviderSession.template("taken"), [1, 2, 3]), (ProviderSession.template("taken", kind: .directory), nil),
            (ProviderSession.template("taken", kind: .symbolicLink, target: "x"), nil),
            (ProviderSession.template("directory", kind: .directory), nil),
        ]
        for (template, content) in templates {
            let there = try await session.find(template.filename)
            try await expectCollision(with: there, from: "making a \(template.kind) '\(template.filename)'") {
                _ = try await session.create(template, content: content)
            }
        }
        var file = try await session.create(ProviderSession.template("file"), content: [1]).item
        let before = file
        file.filename = "taken"
        try await expectCollision(with: taken, from: "a rename to a name that is taken") {
            _ = try await session.modify(file, .filename)
        }
        try await expectCollision(with: taken, from: "new content and a name that is taken") {
            _ = try await session.modify(file, .filename, content: [1, 2])
        }
        let after = try await session.find("file")
        try expect(after, equals: before, "a collision has changed the file")
        try await expectContent(Array("there".utf8), of: taken.itemIdentifier, "after a collision")
    }

    private func expectCollision(
        with there: FileProviderItem, from what: String, _ body: () async throws -> Void
    ) async throws {
        do {
            try await body()
        } catch let error as FileProviderError where error.code == .filenameCollision {
            return try expect(
                error.item?.itemIdentifier == there.itemIdentifier,
                "\(what): the existing item is \(error.item?.itemIdentifier.rawValue ?? "missing in the error")")
        }
        throw ConformanceFailure("\(what): succeeds instead of filenameCollision")
    }
}
