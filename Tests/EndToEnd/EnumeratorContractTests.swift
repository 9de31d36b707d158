import Daemon
import FileProvider
import FileProviderTesting
import Foundation
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// The contract of `enumerator(for:request:)`, by the numbers of its page.
    @Suite(.tags(.long)) struct Enumerators {
        static func tree(_ tree: inout RemoteTree) {
            tree.addFile("file", content: RemoteContent("text"), identifier: "file")
            tree.addDirectory("d", identifier: "d")
            tree.addFile("one", in: "d", content: RemoteContent("1"), identifier: "one")
        }

        @Test("N1 the request for a container's enumerator names the process that lists it") func n1() async throws {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                #expect(try await Command.run("ls", mount["d"]).output == "one\n")
                let call = try #require(mount.provider.log.calls(of: .enumerator, "d").first)
                let request = try #require(call.request)
                #expect(request.processIdentifier != nil)
                #expect(request.userIdentifier == getuid())
                #expect(request.requestingExecutable?.hasSuffix("/ls") == true)
                #expect(request.reason == .lookup || request.reason == .listing)
                // No process waits for the news.
                #expect(await mount.provider.log.waits(.enumerator, .workingSet))
                let news = try #require(mount.provider.log.calls(of: .enumerator, .workingSet).first?.request)
                #expect(news.processIdentifier == nil && news.requestingExecutable == nil)
            }
        }

        @Test("N2 (NAME-3) the root's enumerator is asked for when browsing begins, and not before") func n2()
            async throws
        {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                // The first round compares what is listed by then.
                try await mount.host.engine.refresh()
                #expect(mount.provider.log.count(of: .enumerator, .rootContainer) == 0)
                #expect(try await Command.run("ls", mount.path.string).output == "d\nfile\n")
                #expect(mount.provider.log.count(of: .enumerator, .rootContainer) == 1)
                #expect(try await Command.run("ls", mount.path.string).output == "d\nfile\n")
                #expect(mount.provider.log.count(of: .enumerator, .rootContainer) == 1)
            }
        }

        @Test("N3 (NAME-3) a directory gets a new enumerator each time it is opened and has to be listed") func n3()
            async throws
        {
            try await ProvidedMount.run(Self.tree) { mount async throws in
                #expect(try await Command.run("stat", mount["d"]).status == 0)
                #expect(mount.provider.log.count(of: .enumerator, "d") == 0)
                #expect(try await Command.run("ls", mount["d"]).output == "one\n")
                #expect(try await Command.run("ls", mount["d"]).output == "one\n")
                #expect(mount.provider.log.count(of: .enumerator, "d") == 1)
                try await mount.host.evictItem(identifier: "d")
                #expect(mount.provider.log.count(of: .enumerator, "d") == 1)
                #expect(try await Command.run("ls", mount["d"]).output == "one\n")
                #expect(mount.provider.log.count(of: .enumerator, "d") == 2)
            }
        }

        @Test("N4 (CHANGE-1) the working set is followed in the background, on behalf of no process") func n4()
            async throws
        {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                // The first round compares what is listed by then.
                try await mount.host.engine.refresh()
                let listings = mount.provider.log.count(of: .enumerate, .rootContainer)
                mount.provider.change { $0.addFile("news", content: RemoteContent("x")) }
                #expect(
                    try await eventually {
                        try await Command.run("ls", mount.path.string).output == "d\nfile\nnews\n"
                    })
                #expect(mount.provider.log.count(of: .changes, .workingSet) > 0)
                #expect(mount.provider.log.count(of: .enumerate, .rootContainer) == listings)
                for call in mount.provider.log.calls(of: .enumerator, .workingSet) {
                    #expect(call.request?.isSystemRequest == true)
                }
            }
        }

        @Test("N5 a document that is open is followed live, and only as long as it is") func n5() async throws {
            try await ProvidedMount.run(options: .with(\.documentEnumeration, true), Self.tree) { mount async throws in
                #expect(try await Command.run("cat", mount["file"]).output == "text")
                #expect(await mount.provider.log.waits(.anchor, .workingSet))
                let rounds = mount.provider.log.count(of: .changes, .workingSet)
                let holder = try await BackgroundProgram("sh", "-c", "exec sleep 60 <\"$1\"", "-", mount["file"])
                defer { holder.kill() }
                // The reader before has had it observed, too.
                let isHeld = await eventually {
                    let opened = "/proc/\(holder.processIdentifier)/fd/0"
                    return (try? FileManager.default.destinationOfSymbolicLink(atPath: opened)) == mount["file"]
                }
                #expect(isHeld)
                #expect(await mount.provider.log.waits(.enumerator, "file"))
                mount.provider.changeSilently { $0.edit("file") { $0.permissions = 0o640 } }
                #expect(
                    try await eventually {
                        try await Command.run("stat", "-c", "%a", mount["file"]).line == "640"
                    })
                mount.provider.changeSilently { $0.write(RemoteContent("new text"), to: "file") }
                let version = mount.provider.tree["file"]?.itemVersion
                #expect(
                    await eventually {
                        (try? mount.host.replica.database.item("file"))?.base.version == version
                    })
                // An open handle keeps the old content; the next open reads the new one, and the document is still observed.
                #expect(try await eventually { try await Command.run("cat", mount["file"]).output == "new text" })
                mount.provider.changeSilently { $0.write(RemoteContent("newer text"), to: "file") }
                #expect(try await eventually { try await Command.run("cat", mount["file"]).output == "newer text" })
                #expect(
                    try await Command.run("cat", "/proc/\(holder.processIdentifier)/fd/0").output == "text",
                    "what was opened stays what it was")
                #expect(holder.isRunning)
                holder.kill()
                #expect(mount.provider.log.count(of: .changes, .workingSet) == rounds, "nothing was signalled")
                // It is not asked about any more: nothing comes for longer than two of its pauses.
                var asked = mount.provider.log.count(of: .changes, "file")
                var quietSince = ContinuousClock.now
                #expect(
                    await eventually(within: .seconds(15)) {
                        let now = mount.provider.log.count(of: .changes, "file")
                        if now != asked { (asked, quietSince) = (now, .now) }
                        return ContinuousClock.now - quietSince > .seconds(5)
                    })
                #expect(asked > 0)
            }
        }

        @Test("N5 a document that goes while it is open goes here, once a lookup has confirmed it")
        func n5Gone() async throws {
            try await ProvidedMount.run(options: .with(\.documentEnumeration, true), listing: .root, Self.tree) {
                mount async throws in
                let holder = try await BackgroundProgram("sh", "-c", "exec sleep 60 <\"$1\"", "-", mount["file"])
                defer { holder.kill() }
                mount.provider.faults.fail(.changes, of: "file", with: FileProviderError.noSuchItem("file"))
                #expect(await mount.provider.log.waits(for: 1, .changes, "file"))
                #expect(await mount.provider.log.waits(for: 1, .item, "file"))
                #expect(try await Command.run("ls", mount.path.string).output == "d\nfile\n", "a claim is no news")
                mount.provider.changeSilently { $0.delete("file") }
                #expect(try await eventually { try await Command.run("ls", mount.path.string).output == "d\n" })
            }
        }

        @Test("N6 the trash is listed where there is one, and nothing allows trashing where there is none")
        func n6() async throws {
            try await ProvidedMount.run(options: .with(\.trash, true), listing: .root) { tree in
                Self.tree(&tree)
                tree.edit("file") { $0.capabilities.insert(.allowsTrashing) }
            } _: { mount async throws in
                #expect(await mount.provider.log.waits(.enumerator, .trashContainer))
                mount.provider.change { $0.trash("file") }
                let trash = ".Trash-\(getuid())/files"
                #expect(
                    try await eventually { try await Command.run("ls", mount[trash]).output == "file\n" })
            }
            try await ProvidedMount.run(Self.tree) { mount async throws in
                let request = FileProviderRequest(reason: .listing)
                let error = #expect(throws: FileProviderError.self) {
                    try mount.provider.enumerator(for: .trashContainer, request: request)
                }
                #expect(error?.code == .featureUnsupported)
                _ = try await Command.run("ls", mount.path.string)
                #expect(try mount.host.item(for: "file").capabilities.contains(.allowsTrashing) == false)
                let made = try await Command.run("mkdir", mount[".Trash-\(getuid())"])
                #expect(made.errors.contains("Operation not permitted"), "\(made.errors)")
            }
        }

        @Test("N7 the error that the provider throws instead of an enumerator reaches the process that lists") func n7()
            async throws
        {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                mount.provider.faults.fail(.enumerator, of: "d", with: FileProviderError(.fileReadNoPermission))
                let refused = try await Command.run("ls", mount["d"])
                #expect(refused.errors.contains("Permission denied"), "\(refused.errors)")
                #expect(try await Command.run("ls", mount["d"]).output == "one\n")
            }
        }

        @Test("N8 noSuchItem removes nothing before a lookup has confirmed it") func n8() async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                mount.provider.faults.fail(.enumerator, of: "d", with: FileProviderError.noSuchItem("d"), times: nil)
                mount.provider.faults.fail(.fetch, of: "file", with: FileProviderError.noSuchItem("file"), times: nil)
                #expect(try await Command.run("ls", mount["d"]).status != 0)
                #expect(try await Command.run("cat", mount["file"]).status != 0)
                #expect(mount.provider.log.count(of: .item, "d") > 0)
                #expect(mount.provider.log.count(of: .item, "file") > 0)
                mount.provider.faults.clear()
                #expect(try await Command.run("ls", mount.path.string).output == "d\nfile\n")
                #expect(try await Command.run("ls", mount["d"]).output == "one\n")
                #expect(try await Command.run("cat", mount["file"]).output == "text")
            }
        }

        @Test("N8 what a lookup does not find either is deleted here") func n8Gone() async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                mount.provider.changeSilently { tree in
                    tree.delete("d")
                    tree.delete("file")
                }
                #expect(try await Command.run("ls", mount["d"]).status != 0)
                #expect(try await eventually { try await Command.run("ls", mount.path.string).output == "file\n" })
                #expect(try await Command.run("cat", mount["file"]).status != 0)
                #expect(try await eventually { try await Command.run("ls", mount.path.string).output == "" })
            }
        }

        @Test(
            "N9 (ERROR-9 and READ-7) without credentials or a server the person is told, and nothing is asked for until something triggers it",
            arguments: [
                (
                    FileProviderError.Code.notAuthenticated, "Key was rejected by service",
                    Connection.State.unauthenticated
                ),
                (.serverUnreachable, "No route to host", .offline),
            ])
        func n9(code: FileProviderError.Code, words: String, state: Connection.State) async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                #expect(await mount.provider.log.waits(.anchor, .workingSet))
                let told = Task { [events = mount.host.engine.events] in
                    for await event in events where event.kind == .offline { return true }
                    return false
                }
                mount.provider.faults.failEverything(with: FileProviderError(code, "the gate is shut"))
                let refused = try await Command.run("ls", mount["d"])
                #expect(refused.errors.contains(words), "\(refused.errors)")
                #expect(mount.host.engine.connection.state == state)
                #expect(mount.host.engine.connection.failure?.message == "the gate is shut")
                #expect(await told.value)
                // All that comes by itself is a probe, of the root and no more.
                let asked = mount.provider.log.calls.count
                try await Task.sleep(for: .seconds(3))
                let probes = mount.provider.log.calls.dropFirst(asked)
                #expect(probes.allSatisfy { $0.kind == .item && $0.identifier == .rootContainer }, "\(probes)")
                mount.provider.faults.clear()
                mount.host.engine.errorWasResolved()
                #expect(try await eventually { try await Command.run("ls", mount["d"]).output == "one\n" })
                #expect(mount.host.engine.connection.state == .online)
            }
        }

        @Test("N10 after any other error the call is made again by itself") func n10() async throws {
            struct Hiccup: Error {}
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                mount.provider.faults.fail(.enumerator, of: "d", with: Hiccup())
                mount.provider.faults.fail(.enumerate, of: "d", with: Hiccup())
                mount.provider.log.clear()
                #expect(try await Command.run("ls", mount["d"]).output == "one\n", "the change was not noticed")
                #expect(mount.provider.log.count(of: .enumerator, "d") >= 2, "the one that failed, and another")
                #expect(mount.provider.log.count(of: .enumerate, "d") == 2)
                try await mount.host.evictItem(identifier: "d")
                mount.provider.log.clear()
                // A listing that lasts longer than its callers wait is tried again without callers.
                mount.provider.faults.fail(.enumerate, of: "d", with: Hiccup(), times: 4)
                let refused = try await Command.run("ls", mount["d"])
                #expect(refused.errors.contains("Input/output error"), "\(refused.errors)")
                #expect(
                    await eventually(within: .seconds(15)) {
                        (try? mount.host.replica.database.item("d"))?.inode.content == .materialized
                    })
                let calls = mount.provider.log.calls(of: .enumerate, "d")
                #expect(calls.count == 5, "four that failed, and one")
                #expect(calls.prefix(3).allSatisfy { $0.request?.isSystemRequest == false }, "while a process waited")
                #expect(calls.last?.request?.isSystemRequest == true)
                #expect(try await Command.run("ls", mount["d"]).output == "one\n")
                #expect(mount.provider.log.count(of: .enumerate, "d") == 5, "it is here")
            }
        }

        @Test(
            "N mistakes (NAME-8) in a listing are reported and not looped on",
            arguments: ListingMistake.allCases)
        func mistakes(_ mistake: ListingMistake) async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                mount.provider.faults.add(mistake.effect, to: .enumerate, of: "d")
                let refused = try await Command.run("ls", mount["d"])
                #expect(refused.errors.contains("Input/output error"), "\(refused.errors)")
                #expect(
                    mount.host.engine.warnings.texts.contains { $0.contains(mistake.words) },
                    "\(mount.host.engine.warnings.texts)")
                let asked = mount.provider.log.count(of: .enumerate, "d")
                // A page that brings nothing new may be forgiven, not many of them.
                #expect(asked < 60)
                try await Task.sleep(for: .seconds(3))
                #expect(mount.provider.log.count(of: .enumerate, "d") == asked)
                mount.provider.faults.clear()
                #expect(try await Command.run("ls", mount["d"]).output == "one\n")
            }
        }

        @Test("N an anchor of more than 500 bytes is reported and not kept") func longAnchor() async throws {
            try await ProvidedMount.run(listing: .root, Self.tree) { mount async throws in
                let anchor = SyncAnchor(rawValue: Array(repeating: 7, count: 501))
                mount.provider.faults.add(.anchor(anchor), to: .changes)
                mount.provider.faults.add(.anchor(anchor), to: .anchor)
                mount.provider.change { $0.addFile("new", content: RemoteContent("x")) }
                #expect(
                    try await eventually {
                        try await Command.run("ls", mount.path.string).output == "d\nfile\nnew\n"
                    })
                #expect(mount.host.engine.warnings.texts.contains { $0.contains("sync anchor of 501 bytes") })
                #expect(try mount.host.replica.database.bytes(of: .syncAnchor)?.count ?? 0 <= 500)
                mount.provider.faults.clear()
                mount.provider.change { $0.addFile("newer", content: RemoteContent("x")) }
                #expect(
                    try await eventually {
                        try await Command.run("ls", mount.path.string).output == "d\nfile\nnew\nnewer\n"
                    })
            }
        }
    }
}

/// What a provider does wrong in a listing.
enum ListingMistake: CaseIterable {
    case tokenAgain
    case longToken
    case samePageAgain
    case manyItems

    fileprivate var effect: FaultScript.Effect {
        switch self {
        case .tokenAgain: return .pageToken(nil)
        case .longToken: return .pageToken(FileProviderPage(rawValue: Array(repeating: 7, count: 501)))
        case .samePageAgain: return .samePageAgain
        case .manyItems:
            let item = FileProviderItem(
                itemIdentifier: "x", parentItemIdentifier: "d", filename: "x", kind: .directory,
                itemVersion: ItemVersion(contentVersion: [], metadataVersion: []))
            return .extraItems(Array(repeating: item, count: 100_001))
        }
    }

    /// What is said of it.
    fileprivate var words: String {
        switch self {
        case .tokenAgain: "page token for the second time"
        case .longToken: "page token of 501 bytes"
        case .samePageAgain: "same items"
        case .manyItems: "page of 100002 items"
        }
    }
}
