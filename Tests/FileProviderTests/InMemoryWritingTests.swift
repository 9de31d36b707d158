import FileProvider
import FileProviderTesting
import SystemPackage
import TestSupport
import Testing

@Suite struct InMemoryWritingTests {
    private struct Odd: Error {}

    private func session(_ options: InMemoryProvider.Options = .init()) -> (InMemoryProvider, ProviderSession) {
        let provider = InMemoryProvider(options: options)
        let domain = FileProviderDomain(identifier: "test", source: "memory")
        let manager = TestManager(domain: domain, stateDirectory: "/nonexistent")
        provider.attach(manager)
        return (provider, ProviderSession(provider: provider, manager: manager))
    }

    @Test func readOnlyProviderThrowsFeatureUnsupported() async throws {
        var options = InMemoryProvider.Options()
        options.writing = false
        let (provider, session) = session(options)
        #expect(!provider.features.writing)
        let failure = await failureCode { _ = try await session.create(ProviderSession.template("a"), content: [1]) }
        #expect(failure == .featureUnsupported)
        #expect(provider.tree.count == 0)
    }

    @Test func aLostAnswerLeavesOneItem() async throws {
        let (provider, session) = session()
        provider.faults.add(.applyThenFail(Odd()), to: .create, times: 1)
        let template = ProviderSession.template("file")
        await #expect(throws: Odd.self) { try await session.create(template, content: [1, 2]) }
        let item = try await session.create(template, content: [1, 2]).item
        #expect(provider.tree.items(in: .rootContainer) == [item])
        #expect(provider.tree.applied.map(\.kind) == [.create])
        #expect(provider.tree.applied.map(\.sentIdentifier) == [template.itemIdentifier])
        #expect(provider.log.count(of: .create, template.itemIdentifier) == 2)

        provider.faults.add(.applyThenFail(Odd()), to: .modify, times: 1)
        await #expect(throws: Odd.self) { try await session.modify(item, .contents, content: [3]) }
        let changed = try await session.modify(item, .contents, content: [3])
        #expect(provider.tree.content(of: item.itemIdentifier) == .bytes([3]))
        #expect(provider.tree.applied.filter { $0.fields.contains(.contents) }.map(\.size) == [2, 1])

        provider.faults.add(.applyThenFail(Odd()), to: .delete, times: 1)
        await #expect(throws: Odd.self) { try await session.delete(changed.item) }
        try await session.delete(changed.item)
        #expect(provider.tree.applied.filter { $0.kind == .delete }.count == 1)
        #expect(provider.tree.count == 0)
    }

    @Test func editedTemplateIsStillPending() async throws {
        let (provider, session) = session()
        var template = ProviderSession.template("file")
        let first = try await session.create(template, content: [1, 2])
        template.filename = "another"
        let second = try await session.create(template, content: [3])
        #expect(second.item.itemIdentifier == first.item.itemIdentifier)
        #expect(second.stillPending == [.filename, .contents])
        #expect(provider.tree.count == 1)
    }

    @Test func fieldsThatTheRemoteCannotStoreStayPending() async throws {
        var options = InMemoryProvider.Options()
        options.holds = [.contents, .filename, .parentItemIdentifier, .permissions]
        let (_, session) = session(options)
        var template = ProviderSession.template("file")
        template.permissions = 0o600
        template.tagData = [1]
        let made = try await session.create(template, content: [1], fields: [.permissions, .tagData])
        #expect(made.stillPending == .tagData)
        #expect(made.item.permissions == 0o600)
        #expect(made.item.tagData == nil)
        var item = made.item
        item.tagData = [2]
        #expect(try await session.modify(item, .tagData).stillPending == .tagData)
    }

    @Test func rulesRefuseChangesAndAlterAnswers() async throws {
        let (provider, session) = session()
        provider.faults.add(.refuse(reason: "no such thing here"), to: .create, times: 1)
        let template = ProviderSession.template("file")
        await #expect(throws: ProviderSession.Refusal(reason: "no such thing here")) {
            try await session.create(template, content: [1])
        }
        #expect(provider.tree.count == 0)
        provider.faults.add(.shouldFetchContent(.bytes([7, 7])), to: .create, times: 1)
        let made = try await session.create(template, content: [1])
        #expect(made.shouldFetchContent)
        #expect(made.item.documentSize == 2)
        #expect(try await session.fetch(made.item.itemIdentifier).bytes == [7, 7])

        let anchor = try await session.anchor()
        provider.faults.add(.answerIdentifier("another"), to: .modify, times: 1)
        let changed = try await session.modify(made.item, .contents, content: [2])
        #expect(changed.item.itemIdentifier == "another")
        #expect(try await session.list() == [changed.item])
        let changes = try await session.changes(from: anchor)
        #expect(changes.deleted == [made.item.itemIdentifier])
        #expect(changes.updated == [changed.item])
    }

    @Test func failedUploadChangesNothing() async throws {
        var options = InMemoryProvider.Options()
        options.uploadChunkSize = 10
        let (provider, session) = session(options)
        let gate = Gate()
        provider.faults.add(.holdTransfer(after: 15, gate), to: .create, times: 1)
        provider.faults.add(.failTransfer(after: 30, Odd()), to: .create, times: 1)
        let call = Task {
            try await session.create(ProviderSession.template("file"), content: [UInt8](repeating: 1, count: 40))
        }
        while gate.arrivals == 0 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(provider.tree.count == 0)
        gate.open()
        await #expect(throws: Odd.self) { try await call.value }
        #expect(provider.tree.count == 0)
        #expect(provider.tree.applied.isEmpty)
        let logged = try #require(provider.log.calls(of: .create).first)
        #expect(logged.name == "file")
        #expect(logged.size == 40)
        #expect(logged.fields == [.contents, .filename, .parentItemIdentifier])
        #expect(logged.options == .create([]))
    }

    @Test func namesNeedNotBeUnique() async throws {
        var options = InMemoryProvider.Options()
        options.uniqueNames = false
        let (provider, session) = session(options)
        for _ in 0..<2 { try await session.create(ProviderSession.template("file"), content: [1]) }
        #expect(provider.tree.count == 2)
    }

    @Test func fieldsOfTwoSidesAreMerged() async throws {
        let (provider, session) = session()
        provider.change { $0.addFile("file", content: RemoteContent("a"), identifier: "file") }
        var mine = try await session.item("file")
        provider.change { tree in
            tree.rename("file", to: "theirs")
            tree.edit("file") { $0.tagData = [9] }
        }
        mine.permissions = 0o400
        let merged = try await session.modify(mine, [.permissions, .extendedAttributes]).item
        #expect(merged.filename == "theirs")
        #expect(merged.tagData == [9])
        #expect(merged.permissions == 0o400)
        #expect(merged.extendedAttributes == nil)
    }
}
