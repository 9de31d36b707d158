import FileProvider
import FileProviderTesting
import ProgramProvider
import ProviderDescriptors

/// Runs the conformance suite against a program, over its standard input and output.
package struct ProgramCheck: Sendable {
    package struct Result: Encodable, Sendable {
        package var check: String
        /// What is wrong; nil if the check succeeded.
        package var failure: String?
    }

    private let source: String
    private let factory: ProgramProviderFactory
    private let settings: ProviderSettings

    /// - Parameters:
    ///   - source: `NAME:LOCATION`; the location must be empty, and is emptied after each check.
    ///   - program: the path of the executable; nil to search it by name.
    package init(_ source: String, program: String?, _ settings: ProviderSettings) {
        self.source = source
        self.settings = settings
        factory = ProgramProviderFactory(program: program, isDaemon: false)
    }

    package static var names: [String] {
        ProviderConformance.Check.allCases.map(\.rawValue) + PathCheck.allCases.map(\.rawValue)
            + ItemCheck.allCases.map(\.rawValue).filter { PathCheck(rawValue: $0) == nil }
    }

    /// Runs checks, one after the other.
    ///
    /// - Parameter names: of the checks to run; nil for all.
    /// - Throws: `FileProviderError` if the program cannot be started, or its remote is not empty or cannot be written; nothing
    ///   is changed then.
    package func run(only names: Set<String>? = nil, _ onResult: (Result) throws -> Void) async throws {
        let first = try await ProgramUnderTest(source, factory, settings)
        let hasPaths = first.paths != nil
        try await closing(first.close) {
            guard try await first.items().isEmpty else {
                throw FileProviderError(
                    .directoryNotEmpty,
                    "the remote is not empty; the checks delete all that they find, so give an empty one")
            }
            guard first.isWritable else {
                throw FileProviderError(
                    .featureUnsupported, "the program cannot write ('writing'), and so no items can be made to check it"
                )
            }
        }
        let suite = ProviderConformance { try await emptyProgram() }
        for check in ProviderConformance.Check.allCases where names?.contains(check.rawValue) ?? true {
            try await report(check.rawValue, onResult) { try await suite.run(check) }
        }
        for check in PathCheck.allCases where hasPaths && names?.contains(check.rawValue) ?? true {
            try await report(check.rawValue, onResult) {
                try await withProgram { if let client = $0.paths { try await check.run(client) } }
            }
        }
        for check in ItemCheck.allCases where !hasPaths && names?.contains(check.rawValue) ?? true {
            try await report(check.rawValue, onResult) {
                try await withProgram { if let client = $0.store { try await check.run(client) } }
            }
        }
    }

    /// A program of its own for a check.
    ///
    /// - Throws: ``ConformanceFailure`` if an earlier check has left items that cannot be deleted: the check would fail because of
    ///   them.
    private func emptyProgram() async throws -> ProgramUnderTest {
        let program = try await ProgramUnderTest(source, factory, settings)
        do {
            let left = try await program.items()
            guard !left.isEmpty else { return program }
            let names = left.prefix(3).map { "'\($0)'" }.joined(separator: ", ")
            throw ConformanceFailure(
                "not run, because the location is not empty: an earlier check has left \(names)"
                    + (left.count > 3 ? " and others" : "") + ", which the program has not deleted")
        } catch {
            await program.dispose()
            throw error
        }
    }

    /// Calls a closure with a program of its own, and empties the remote.
    private func withProgram(_ body: (ProgramUnderTest) async throws -> Void) async throws {
        let program = try await emptyProgram()
        try await closing(program.dispose) { try await body(program) }
    }

    private func report(
        _ check: String, _ onResult: (Result) throws -> Void, _ body: () async throws -> Void
    ) async throws {
        var result = Result(check: check)
        do { try await body() } catch { result.failure = "\(error)" }
        try onResult(result)
    }
}
