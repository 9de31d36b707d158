import Control
import FileProvider
import Foundation
import Logging
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// A folder that becomes a domain, before the domain is mounted for the first time.
@Suite struct ImportedDomainTests {
    private let directory: TemporaryDirectory
    private let store: DomainStore
    private let folder: FilePath
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private let domain: FileProviderDomain

    init() throws {
        directory = try TemporaryDirectory()
        store = try DomainStore(in: directory["state"])
        folder = try directory.makeDirectory("folder")
        _ = try directory.makeFile("folder/file", Array("here".utf8))
        domain = FileProviderDomain(identifier: "d", source: directory["source"].string)
    }

    @Test("IMPORT-4: an imported domain has the options of its import also if it could not be mounted")
    func options() throws {
        defer { directory.remove() }
        var options = DomainOptions()
        options.cacheLimit = 1 << 30
        options.remote = ["endpoint": "http://127.0.0.1:1"]
        let imported = try store.importFolder(
            folder, as: domain, mountpoint: directory["mount"].string, options: options, isTaken: true, logger: logger
        ) { _ in }
        #expect(imported.left == [])
        let known = try #require(try store.domain(named: "d"))
        #expect(known.options == options)
        #expect(known.source == domain.source && known.mountpoint == directory["mount"].string)
    }

    @Test("IMPORT-2: an import that cannot remove the files from the folder says what is there, and is finished later")
    func cutShort() throws {
        defer { directory.remove() }
        // Comes into the folder when all of its files were taken.
        let hindrance = FilePath(folder.string + "/manifest.json")
        let header =
            #"{"format":"yonder-manifest","version":1000,"domain":"d","source":"/s","keep":"dirty","items":["# + "\n"
        let error = #expect(throws: ControlError.self) {
            _ = try store.importFolder(
                folder, as: domain, mountpoint: directory["mount"].string, options: DomainOptions(), isTaken: true,
                logger: logger
            ) { _ in
                try? Data(header.utf8).write(to: URL(fileURLWithPath: hindrance.string))
            }
        }
        #expect(error?.message.contains("imported as the domain 'd'") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("'yonder mount d' goes on") == true, "\(error?.message ?? "")")
        #expect(try store.domain(named: "d")?.source == domain.source)
        #expect(FileManager.default.fileExists(atPath: folder.string + "/file"))
        try FileManager.default.removeItem(atPath: hindrance.string)
        #expect(try store.finishImport(of: "d", logger: logger) == [])
        #expect(!FileManager.default.fileExists(atPath: folder.string))
        let contents = store.directory(of: "d").appending("contents")
        let files = try FileManager.default.contentsOfDirectory(atPath: contents.string)
        let texts = files.compactMap { FileManager.default.contents(atPath: contents.string + "/" + $0) }
        #expect(texts == [Data("here".utf8)])
    }
}
