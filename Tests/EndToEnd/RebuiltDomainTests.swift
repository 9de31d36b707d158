import FileProvider
import Foundation
import Logging
import Syscalls
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// A domain of which a rebuild that was cut short has left the new database beside its place.
@Suite struct RebuiltDomainTests {
    @Test(
        "CHECK-4: a complete new database is used from the next start of the daemon, or the next mount, on",
        arguments: [true, false])
    func isAdopted(isStart: Bool) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let store = try DomainStore(in: directory["state"])
        _ = try directory.makeDirectory("folder")
        _ = try directory.makeFile("folder/file", Array("here".utf8))
        let domain = FileProviderDomain(identifier: "d", source: directory["source"].string)
        _ = try store.importFolder(
            directory["folder"], as: domain, mountpoint: directory["mount"].string, options: DomainOptions(),
            isTaken: false, logger: logger
        ) { _ in }
        let database = store.directory(of: "d").appending("replica.sqlite")
        try database.move(to: FilePath(database.string + "-rebuilt"))
        if isStart {
            #expect(store.settle { Issue.record("\($0)") } == [])
        } else {
            #expect(try store.finishImport(of: "d", logger: logger) == [])
        }
        #expect(FileManager.default.fileExists(atPath: database.string))
        #expect(try store.domain(named: "d")?.damage == nil)
    }
}
