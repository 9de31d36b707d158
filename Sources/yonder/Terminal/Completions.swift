import ArgumentParser
import Control
import FileNames
import Foundation

extension CompletionKind {
    /// The names of the known domains; for a word that begins like a path, the files there.
    static let domains = CompletionKind.custom { _, _, word in
        forShell(isPath(word) ? files(completing: word) : domainNames)
    }

    /// The names of the known domains and the directories; for a word that begins like a path, the directories there.
    static let sources = CompletionKind.custom { _, _, word in
        let directories = files(completing: word).filter(isDirectory)
        return forShell(isPath(word) ? directories : domainNames + directories)
    }

    private static func isPath(_ word: String) -> Bool {
        word.contains("/") || word.hasPrefix(".") || word.hasPrefix("~")
    }

    private static var domainNames: [String] {
        contents(of: Places(environment: ProcessInfo.processInfo.environment).stateDirectory + "/domains")
    }

    /// The files in the directory that a word begins with, in the word's form. Hidden ones only if the name begins with a dot.
    private static func files(completing word: String) -> [String] {
        let directory = word.lastIndex(of: "/").map { String(word[...$0]) } ?? ""
        let isHidden = word.dropFirst(directory.count).hasPrefix(".")
        return contents(of: directory.isEmpty ? "." : directory).filter { isHidden || !$0.hasPrefix(".") }
            .map { directory + $0 }
    }

    private static func contents(of directory: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: expanded(directory))) ?? []).sorted()
    }

    private static func isDirectory(_ path: String) -> Bool {
        var isDirectory: ObjCBool = false
        return FileManager.default.fileExists(atPath: expanded(path), isDirectory: &isDirectory)
            && isDirectory.boolValue
    }

    /// The path that the shell makes of a word: it expands `~/` only after the completion.
    private static func expanded(_ word: String) -> String {
        guard word.hasPrefix("~/") else { return word }
        return FileManager.default.homeDirectoryForCurrentUser.path + String(word.dropFirst())
    }

    /// Quotes words for `compgen -W` of bash, which expands them: a file could be named `$(COMMAND)`. The lists of all shells have
    /// one word in a line.
    private static func forShell(_ words: [String]) -> [String] {
        let words = words.filter { word in !word.unicodeScalars.contains { $0.properties.generalCategory == .control } }
        guard CompletionShell.requesting == .bash else { return words }
        return words.map(ShellWord.escaped)
    }
}
