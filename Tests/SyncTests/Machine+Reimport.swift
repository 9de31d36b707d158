import FileProvider
import FileProviderTesting
import Replica
import Testing

@testable import Sync

extension Machine {
    /// A remote with files in several levels of directories.
    static func fillForReimport(_ tree: inout RemoteTree) {
        ScriptRun.fill(&tree)
        tree.addFile("deep", in: "f", content: RemoteContent("first deep"), identifier: "deep")
    }

    /// The remote loses its identifiers, and the machine reimports everything.
    func reimport(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await loseIdentifiers()
        try await expectReimported(sourceLocation: sourceLocation)
    }

    func expectReimported(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        await engine.continueReimport()
        try await drain()
        await engine.continueReimport()
        try await expectSettled(sourceLocation: sourceLocation)
        #expect(try replica.database.reimports.requests().isEmpty, sourceLocation: sourceLocation)
    }

    /// The remote loses its identifiers, and the machine is told so.
    func loseIdentifiers(below path: String = "") async throws {
        provider.change { $0.loseIdentifiers() }
        try await engine.reimport(below: number(path))
    }

    /// Materializes a file, and returns when the replica has recorded it.
    func materialize(_ path: String) async throws {
        try await engine.materialize(number(path), request: request)
    }
}
