import ArgumentParser
import Control
import Foundation

extension CompletionKind {
    /// The names of the known domains; for a word that begins like a path, the files there.
    static let domains = CompletionKind.custom { _, _, prefix in
        if prefix.contains("/") || prefix.hasPrefix(".") { return files(beginningWith: prefix) }
        let state = Places(environment: ProcessInfo.processInfo.environment).stateDirectory
        return contents(of: state + "/domains")
    }

    private static func files(beginningWith prefix: String) -> [String] {
        let directory = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
        return contents(of: directory.isEmpty ? "." : directory).map { directory + $0 }
    }

    private static func contents(of directory: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []).sorted()
    }
}
