import FileProvider

/// Checks of reimports: items are recognized, left unchanged, and never created twice.
extension ProviderConformance.Subject {
    func checkOfferedItems() async throws {
        let content = Array("content".utf8)
        try await remote.makeDirectory("directory")
        try await remote.write(content, to: "file")
        try await checkRecognition(of: "directory", kind: .directory, nil)
        try await checkRecognition(of: "file", kind: .file, content)
        try await checkRecognition(of: "file", kind: .file, nil)
        try await checkDifferentContent()
        try await checkMissing()
    }

    /// With `keepExisting` the answer is the existing item, even if the template differs.
    private func checkRecognition(of name: String, kind: ItemKind, _ content: [UInt8]?) async throws {
        let there = try await session.find(name)
        var template = ProviderSession.template(name, kind: kind, size: there.documentSize)
        template.contentModificationDate = FileTimestamp(seconds: 1_000_000_000, nanoseconds: 0)
        template.permissions = 0o600
        for options in [CreateItemOptions.keepExisting, [.keepExisting, .recognizeOnly]] {
            let stored = try await session.create(
                template, content: content, fields: [.contentModificationDate, .permissions],
                options: options.union(.mayAlreadyExist))
            try expect(stored.item, equals: there, "'\(name)' offered again is answered otherwise than it was")
            let now = try await session.find(name)
            try expect(now, equals: there, "'\(name)' was changed by being offered again")
        }
    }

    private func checkDifferentContent() async throws {
        let options: CreateItemOptions = [.mayAlreadyExist, .keepExisting]
        try await expect(.filenameCollision, from: "offering a file again that has other content there") {
            _ = try await session.create(
                ProviderSession.template("file"), content: Array("CONTENT".utf8), options: options)
        }
        try await expect(.filenameCollision, from: "offering a file again that has another size there") {
            _ = try await session.create(ProviderSession.template("file", size: 3), options: options)
        }
        try await expectContent(
            Array("content".utf8), of: session.find("file").itemIdentifier,
            "after another file was offered in its place")
    }

    /// With `recognizeOnly` nothing is created.
    private func checkMissing() async throws {
        let options: CreateItemOptions = [.mayAlreadyExist, .keepExisting, .recognizeOnly]
        for (name, kind) in [("no file", ItemKind.file), ("no directory", .directory)] {
            do {
                _ = try await session.create(
                    ProviderSession.template(name, kind: kind, size: kind == .file ? 5 : nil), options: options)
                throw ConformanceFailure("'\(name)', which is not there, is recognized")
            } catch is ProviderSession.Refusal {
                continue
            }
        }
        try await expectNames(["directory", "file"], "after missing items were offered")
        // Without it, a local item is created.
        let made = try await session.create(
            ProviderSession.template("new"), content: [1, 2], options: [.mayAlreadyExist, .keepExisting])
        try await expectStored(made, at: "new", [1, 2])
    }
}
