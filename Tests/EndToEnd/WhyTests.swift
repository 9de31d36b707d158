import Control
import FileProvider
import FileProviderTesting
import Replica
import Sync
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

extension RealMount {
    /// `yonder why`, for every state that an item can be in: what it says of eviction is what evicting does.
    @Suite struct Explanations {
        /// What the explanation has to say, and whether the item can be evicted.
        struct Expectation {
            var path: String
            var words: [String]
            /// Why it cannot be evicted; nil when it can.
            var refusal: String?
        }

        private static let gib: Int64 = 1 << 30

        private static func fill(_ tree: inout RemoteTree) {
            let names = [
                "dataless", "whole", "edited", "failing", "moved", "pinned", "open", "linked", "trashed", "both",
            ]
            for name in names {
                tree.addFile(name, content: RemoteContent("remote \(name)"), identifier: ItemIdentifier(name))
            }
            tree.addFile("partial", content: .pattern(size: gib, seed: 1), identifier: "partial")
            tree.addDirectory("directory", identifier: "directory")
            tree.addFile("inner", in: "directory", content: RemoteContent("inner"), identifier: "inner")
            tree.addDirectory("kept", identifier: "kept")
            tree.addFile("child", in: "kept", content: RemoteContent("child"), identifier: "child")
        }

        private static func run(_ test: (ProvidedMount) async throws -> Void) async throws {
            var mounted = DomainOptions()
            mounted.ignoredNames = ["*.ignored"]
            try await ProvidedMount.run(options: ProvidedMount.trashing, mounted: mounted) {
                fill(&$0)
            } _: { mount async throws in
                _ = try await Command.run("ls", "-R", mount.path.string)
                try await test(mount)
            }
        }

        private func record(_ mount: ProvidedMount, _ path: String) throws -> ItemRecord {
            var directory = InodeNumber.root
            var found: ItemRecord?
            for name in path.split(separator: "/") {
                found = try mount.host.replica.database.item(named: String(name), in: directory)
                directory = try #require(found, "\(path)").inode.number
            }
            return try #require(found, "\(path)")
        }

        private func lines(_ mount: ProvidedMount, _ path: String) async throws -> [String] {
            try await WhyExplanation(host: mount.host).lines(for: record(mount, path))
        }

        private func expect(_ expected: Expectation, _ mount: ProvidedMount) async throws {
            let item = try record(mount, expected.path)
            let text = try await lines(mount, expected.path).joined(separator: "\n")
            for words in expected.words {
                #expect(text.contains(words), "'\(expected.path)' lacks '\(words)':\n\(text)")
            }
            let report = try await mount.host.engine.evict(item.inode.number, isStrict: true)
            if let refusal = expected.refusal {
                #expect(text.contains("cannot be evicted now: " + refusal), "'\(expected.path)':\n\(text)")
                #expect(!text.contains("It can be evicted"), "'\(expected.path)':\n\(text)")
                #expect(report.refusals.map(\.number) == [item.inode.number], "'\(expected.path)' was evicted")
                let words = await report.refusals.first?.refusal.words(on: item.inode.number, of: mount.host)
                #expect(words?.hasPrefix(refusal) == true, "'\(expected.path)' refuses as '\(words ?? "none")'")
            } else {
                #expect(!text.contains("cannot be evicted"), "'\(expected.path)':\n\(text)")
                #expect(report.refusals.isEmpty, "'\(expected.path)' refuses")
                #expect(try record(mount, expected.path).inode.content == .dataless)
            }
        }

        @Test("Issue 14, 3.12: what why says of eviction is what evicting does, in every state") func everyState()
            async throws
        {
            try await Self.run { mount async throws in
                let host = mount.host
                for name in ["whole", "edited", "failing", "moved", "pinned", "open", "linked", "trashed", "both"] {
                    try await host.requestDownloadForItem(withIdentifier: ItemIdentifier(name))
                }
                for name in ["inner", "child"] as [ItemIdentifier] {
                    try await host.requestDownloadForItem(withIdentifier: name)
                }
                try await host.requestDownloadForItem(withIdentifier: "partial", requestedRange: 0..<4096)
                #expect(try await eventually { try record(mount, "partial").inode.localBytes > 0 })
                host.engine.pause(.user)
                let made = try await Command.shell(
                    """
                    cd "$1" && echo more >> edited && echo new > new && : > empty && echo x > x.ignored && mkfifo fifo &&
                    ln linked second && mv moved directory/moved && mkdir fresh && echo more >> both &&
                    setfattr -n user.yonder.policy -v keepDownloaded pinned kept
                    """, mount.path.string)
                #expect(made.status == 0, "\(made.errors)")
                try host.trashItem(withIdentifier: "trashed")
                let holder = try await BackgroundProgram("tail", "-f", mount["open"])
                defer { holder.kill() }
                #expect(try await eventually { host.openInodes.isOpen(try record(mount, "open").inode.number) })
                for name in ["edited", "new", "both"] {
                    #expect(try await eventually { !host.openInodes.isOpen(try record(mount, name).inode.number) })
                }
                let expectations = [
                    Expectation(path: "dataless", words: ["Its content is not here", "nothing is pending"]),
                    Expectation(path: "partial", words: ["of its content are here", "It can be evicted."]),
                    Expectation(path: "whole", words: ["Its content is here", "It can be evicted."]),
                    Expectation(
                        path: "edited", words: ["Not on the remote yet: contents"],
                        refusal: "a local change is not on the remote yet"),
                    Expectation(
                        path: "new", words: ["The remote does not have it yet"],
                        refusal: "it exists on this machine only until it has been uploaded"),
                    Expectation(
                        path: "empty", words: ["The remote does not have it yet"],
                        refusal: "it exists on this machine only until it has been uploaded"),
                    Expectation(
                        path: "x.ignored", words: ["It stays on this machine"],
                        refusal: "it exists on this machine only and is never uploaded"),
                    Expectation(path: "pinned", words: ["It is kept downloaded"], refusal: "it is kept downloaded"),
                    Expectation(
                        path: "kept/child", words: ["because '", "It is kept downloaded"],
                        refusal: "it is kept downloaded"),
                    Expectation(
                        path: "open", words: ["It cannot be evicted now: open in "], refusal: "open in "),
                    Expectation(
                        path: "linked", words: ["Its content is here"], refusal: "it has several hard links"),
                ]
                for expected in expectations { try await expect(expected, mount) }
                let trashed = try #require(try host.replica.database.item("trashed"))
                let text = try await WhyExplanation(host: host).lines(for: trashed).joined(separator: "\n")
                #expect(text.contains("It lies in the trash since"))
                #expect(text.contains("cannot be evicted now: it is in the trash"))
                #expect(try await host.engine.evict(trashed.inode.number, isStrict: true).refusals.count == 1)
                let fresh = try await lines(mount, "fresh").joined(separator: "\n")
                #expect(fresh.contains("cannot be evicted now: it exists on this machine only until"))
                let fifo = try await lines(mount, "fifo").joined(separator: "\n")
                #expect(fifo.contains("It exists on this machine only.") && !fifo.contains("evicted"))
                // A conflict, and an upload that fails.
                mount.provider.change { $0.write(RemoteContent("remote, changed"), to: "both") }
                mount.provider.faults.fail(
                    .modify, of: "failing", with: FileProviderError(.insufficientQuota), times: nil)
                #expect(try await Command.shell("echo more >> \"$1\"", mount["failing"]).status == 0)
                host.engine.pause(nil)
                #expect(
                    await eventually {
                        ((try? await lines(mount, "failing"))?.joined() ?? "").contains("The last attempt failed")
                    })
                try await expect(
                    Expectation(
                        path: "failing", words: ["It is tried again at", "(insufficientQuota)"],
                        refusal: "a local change is not on the remote yet"), mount)
                #expect(await eventually { (try? host.replica.database.conflictCopies().count) == 1 })
                let copy = try #require(try host.replica.database.conflictCopies().first?.item)
                let words = try await lines(mount, copy.name).joined(separator: "\n")
                #expect(words.contains("It is a conflict copy: it was written here while 'both' was changed"))
                mount.provider.faults.clear()
                try await host.engine.retry()
            }
        }

        @Test("ERROR-4: the name on the remote is another item's only where another item has it here")
        func nameOnTheRemote() async throws {
            try await ProvidedMount.run { tree in
                for name in ["old", "taken"] {
                    tree.addFile(name, content: RemoteContent(name), identifier: ItemIdentifier(name))
                }
                for number in ["1", "2"] {
                    tree.addFile("twin", content: RemoteContent(number), identifier: ItemIdentifier(number))
                }
            } _: { mount async throws in
                _ = try await Command.run("ls", mount.path.string)
                mount.host.engine.pause(.user)
                let made = try await Command.shell(
                    "cd \"$1\" && mv old new && mv taken moved && echo x > taken", mount.path.string)
                #expect(made.status == 0, "\(made.errors)")
                let database = mount.host.replica.database
                let twins = try ["1", "2"].compactMap { try database.item(ItemIdentifier($0)) }
                let twin = try #require(twins.first { $0.name != "twin" })
                for (path, words) in [
                    ("new", " On the remote its name is still 'old'."),
                    ("moved", " On the remote its name is still 'taken', which another item has here."),
                    (twin.name, " On the remote its name is 'twin', which another item has here."),
                ] {
                    let headline = try #require(try await lines(mount, path).first)
                    #expect(headline.hasSuffix(words), "'\(path)': \(headline)")
                }
                for path in ["taken", "twin"] {
                    let headline = try #require(try await lines(mount, path).first)
                    #expect(!headline.contains("On the remote"), "'\(path)': \(headline)")
                }
                mount.host.engine.pause(nil)
            }
        }

        @Test("ERROR-4: SEND-8: an item in a new directory waits for that, and says why it cannot be sent")
        func directoryAbove() async throws {
            try await Self.run { mount async throws in
                let host = mount.host
                mount.provider.faults.fail(.create, with: FileProviderError(.insufficientQuota), times: nil)
                host.engine.pause(.user)
                let made = try await Command.shell(
                    "cd \"$1\" && mkdir -p above/below && echo x > above/below/file && mv whole above/",
                    mount.path.string)
                #expect(made.status == 0, "\(made.errors)")
                let inner = ["above/below", "above/below/file", "above/whole"]
                for path in inner {
                    let text = try await lines(mount, path).joined(separator: "\n")
                    #expect(text.contains("/above', which has to be sent first."), "'\(path)':\n\(text)")
                }
                let above = try await lines(mount, "above").joined(separator: "\n")
                #expect(!above.contains("sent first"), "\(above)")
                host.engine.pause(nil)
                #expect(
                    await eventually {
                        ((try? await lines(mount, "above"))?.joined() ?? "").contains("The last attempt failed")
                    })
                var pending: [PendingItem] = []
                try await PendingReporter(host: host).list { pending += $0 }
                for path in inner {
                    let text = try await lines(mount, path).joined(separator: "\n")
                    #expect(text.contains("/above', which has to be sent first: "), "'\(path)':\n\(text)")
                    #expect(text.contains(" (insufficientQuota)."), "'\(path)':\n\(text)")
                    let error = try #require(pending.first { $0.path.hasSuffix("/" + path) }?.error, "\(path)")
                    #expect(error.code == "insufficientQuota" && error.attempts == 0, "'\(path)': \(error)")
                    #expect(error.message.contains("/above' has to be sent first: "), "'\(path)': \(error)")
                }
                mount.provider.faults.clear()
                try await host.engine.retry()
            }
        }

        @Test("ERROR-4: SEND-8: the date of a directory waits for what is in it, and says for what")
        func dateOfADirectory() async throws {
            try await Self.run { mount async throws in
                let quota = FileProviderError(.insufficientQuota)
                mount.provider.faults.fail(.create, with: quota, times: nil)
                mount.provider.faults.fail(.delete, with: quota, times: nil)
                for (command, name) in [("echo x >", "kept/refused"), ("rm", "directory/inner")] {
                    let made = try await Command.shell("cd \"$1\" && \(command) \(name)", mount.path.string)
                    #expect(made.status == 0, "\(made.errors)")
                    let directory = String(name.prefix { $0 != "/" })
                    let words = "/\(name)' has to be sent first: "
                    let isSaid = await eventually(within: .seconds(15)) {
                        ((try? await lines(mount, directory))?.joined(separator: "\n") ?? "").contains(words)
                    }
                    let text = try await lines(mount, directory).joined(separator: "\n")
                    #expect(isSaid && text.contains(" (insufficientQuota)."), "\(text)")
                    var pending: [PendingItem] = []
                    try await PendingReporter(host: mount.host).list { pending += $0 }
                    let error = try #require(pending.first { $0.path.hasSuffix("/" + directory) }?.error, "\(pending)")
                    #expect(error.code == "insufficientQuota" && error.attempts == 0, "\(error)")
                    #expect(error.message.contains("/\(name)' in it: "), "\(error)")
                }
                mount.provider.faults.clear()
                try await mount.host.engine.retry()
            }
        }

        @Test("ERROR-4: a date that the remote has cut is not one that it does not store") func truncatedDate()
            async throws
        {
            var options = InMemoryProvider.Options()
            options.holds.subtract([.contentModificationDate, .permissions])
            try await ProvidedMount.run(options: options) {
                $0.addDirectory("d", identifier: "d")
            } _: { mount async throws in
                let made = try await Command.shell(
                    "ls \"$1\" && chmod 750 \"$1/d\" && touch -d '2020-02-03 04:05:06.789 UTC' \"$1/d\"",
                    mount.path.string)
                #expect(made.status == 0, "\(made.errors)")
                func has(_ words: String) async -> Bool {
                    await eventually { (try? await lines(mount, "d"))?.joined(separator: " ").contains(words) == true }
                }
                #expect(await has("does not store these, which stay on this machine: date, mode."))
                mount.provider.change {
                    $0.edit("d") { $0.contentModificationDate = FileTimestamp(seconds: 1_580_702_706) }
                }
                #expect(await has("this machine: mode. The remote rounds its date to 2020-02-03T"))
            }
        }

        @Test("SEND-12: the changes that could not be sent are found, in all and below a directory")
        func aWaitTellsFailures() async throws {
            try await Self.run { mount async throws in
                let quota = FileProviderError(.insufficientQuota, "the disk is full")
                mount.provider.faults.fail(.modify, of: "failing", with: quota, times: nil)
                mount.provider.faults.fail(.delete, of: "inner", with: quota, times: nil)
                let made = try await Command.shell(
                    "cd \"$1\" && echo more >> failing && rm directory/inner", mount.path.string)
                #expect(made.status == 0, "\(made.errors)")
                let database = mount.host.replica.database
                #expect(
                    try await eventually(within: .seconds(15)) {
                        try database.failedChanges(below: nil, limit: 10).count == 2
                    })
                let directory = try record(mount, "directory").inode.number
                let below = try database.failedChanges(below: directory, limit: 10)
                let deletion = try #require(try database.pendingDeletions().first)
                #expect(below.map(\.mark) == [.deletion(deletion.id)] && below.first?.message == "the disk is full")
                #expect(try database.failedChanges(below: record(mount, "kept").inode.number, limit: 10) == [])
                let item = try record(mount, "failing")
                let file = try database.failedChanges(below: item.inode.number, limit: 10)
                #expect(file.map(\.mark) == [.item(item.id)] && file.first?.nextTry != nil)
                let resolver = PathResolver(host: mount.host)
                let path = try PrecedingChange.shownPath(of: .deletion(deletion.id), resolver)
                #expect(path?.hasSuffix("/directory/inner") == true)
                mount.provider.faults.clear()
                try await mount.host.engine.retry()
            }
        }

        @Test("ERROR-4: of a change that is sent again now, nothing names a next attempt or counts it as failed")
        func aRepeatedUpload() async throws {
            try await Self.run { mount async throws in
                let host = mount.host
                // What fails so is tried again a second later.
                let failure = FileProviderError(.malformedResponse)
                mount.provider.faults.fail(.modify, of: "failing", with: failure)
                mount.provider.faults.fail(.delete, of: "dataless", with: failure)
                let gates = [
                    mount.provider.faults.hold(.modify, of: "failing", skipping: 1),
                    mount.provider.faults.hold(.delete, of: "dataless", skipping: 1),
                ]
                let made = try await Command.shell(
                    "cd \"$1\" && echo more >> failing && rm dataless", mount.path.string)
                #expect(made.status == 0, "\(made.errors)")
                let database = host.replica.database
                let item = try record(mount, "failing")
                #expect(try await eventually(within: .seconds(15)) { try database.failedChangeCount() == 2 })
                #expect(await eventually(within: .seconds(15)) { gates.allSatisfy { $0.waiting > 0 } })
                let text = try await lines(mount, "failing").joined(separator: "\n")
                #expect(text.contains("It is being uploaded."), "\(text)")
                #expect(text.contains("An earlier attempt failed") && !text.contains("tried again"), "\(text)")
                let information = try await ItemReporter(host: host).information(on: item, path: "failing")
                #expect(information.error?.code == "malformedResponse" && information.error?.nextTry == nil)
                var pending: [PendingItem] = []
                try await PendingReporter(host: host).list { pending += $0 }
                for name in ["failing", "dataless"] {
                    let entry = try #require(pending.first { $0.path.hasSuffix("/" + name) })
                    #expect(entry.error?.code == "malformedResponse" && entry.error?.nextTry == nil, "\(entry)")
                }
                for entry in pending { #expect(entry.error?.nextTry == nil, "\(entry)") }
                #expect(try await StatusReporter(host: host).status().failed == 0)
                #expect(try database.failedChangeCount() == 2)
                for gate in gates { gate.open() }
                #expect(try await eventually { try database.failedChangeCount() == 0 })
            }
        }

        @Test("Issue 14, 3.15: a download that runs refuses eviction as that, and names who waits for it")
        func aRunningDownload() async throws {
            try await Self.run { mount async throws in
                let gate = mount.provider.faults.hold(.fetch, of: "whole")
                let number = try record(mount, "whole").inode.number
                for (process, words) in [
                    (42, "it is being downloaded for yonder (pid 42)"), (nil, "it is being downloaded"),
                ] as [(Int32?, String)] {
                    let request = FileProviderRequest(
                        reason: .download, processIdentifier: process, requestingExecutable: "/usr/bin/yonder")
                    let download = Task {
                        try await mount.host.engine.download(number, request: request) { _, _ in }
                    }
                    #expect(await eventually { await !mount.host.engine.waitersForDownload(of: number).isEmpty })
                    let report = try await mount.host.engine.evict(number, isStrict: true)
                    let refusal = try #require(report.refusals.first?.refusal)
                    #expect(refusal.code == "EBUSY" && refusal.errno == .resourceBusy)
                    #expect(await refusal.words(on: number, of: mount.host) == words)
                    #expect(await eventually { gate.waiting > 0 })
                    let told = try await lines(mount, "whole")
                    #expect(told.contains("It cannot be evicted now: \(words)."))
                    let text = told.joined(separator: "\n")
                    // The second download may take over what the first has begun, with its reader.
                    let reader = process.map { "for yonder (pid \($0))" } ?? ""
                    #expect(text.contains("It is being downloaded \(reader)"), "\(text)")
                    #expect(text.contains(": 0 bytes of 12 bytes are here.\n"), "\(text)")
                    // No other sentence says that nothing is under way.
                    #expect(text.contains("All its changes have been uploaded.\n"), "\(text)")
                    for other in ["is not here", "reading downloads", "nothing is pending", "fetched again"] {
                        #expect(!text.contains(other), "\(text)")
                    }
                    download.cancel()
                    _ = try? await download.value
                    #expect(await eventually { await mount.host.engine.waitersForDownload(of: number).isEmpty })
                }
                gate.open()
            }
        }

        @Test("Issue 14, 3.15: a download that no process waits for is cancelled by an eviction")
        func aBackgroundDownloadIsCancelled() async throws {
            try await Self.run { mount async throws in
                let gate = mount.provider.faults.hold(.fetch, of: "whole")
                let number = try record(mount, "whole").inode.number
                let download = Task {
                    try await mount.host.engine.download(
                        number, request: FileProviderRequest(reason: .synchronization)
                    ) { _, _ in }
                }
                #expect(await eventually { gate.waiting > 0 })
                #expect(try await mount.host.engine.evict(number, isStrict: true).refusals.isEmpty)
                _ = try? await download.value
                #expect(try record(mount, "whole").inode.content == .dataless)
                gate.open()
            }
        }
    }
}
