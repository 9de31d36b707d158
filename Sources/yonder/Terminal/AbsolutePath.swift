import ArgumentParser
import Control
import FileNames
import Foundation
import Syscalls
import SystemPackage

/// A path that the user has named, made absolute for the daemon.
struct AbsolutePath: ExpressibleByArgument {
    /// A symbolic link outside of all mounts that leads into one is followed, also as the last component. In a mount `..` stays where
    /// it may be behind a link, which the daemon follows.
    let text: String
    /// For commands that remove or move the item: a link that is the last component is not followed.
    let itself: String
    /// As ``text``, for what is no item of a mount: every `..` is resolved.
    let place: String
    /// A slash if the user wrote one at the end: the item must be a directory.
    let slash: String

    /// ``text`` with ``slash``.
    var withSlash: String { text + slash }

    static var defaultCompletionKind: CompletionKind { .file() }

    /// - Returns: nil for a relative path when the working directory was removed, and for an empty path, which would otherwise
    ///   mean the working directory: `yonder delete "$UNSET"`.
    init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        if argument.utf8.first != UInt8(ascii: "/"), Machine.currentDirectory == nil {
            FileHandle.standardError.write(Data("yonder: the working directory is gone: give absolute paths\n".utf8))
            return nil
        }
        text = Self.resolving(argument, followsLast: true, keepsParents: true)
        itself = Self.resolving(argument, followsLast: false, keepsParents: true)
        place = Self.resolving(argument)
        slash = argument.utf8.last == UInt8(ascii: "/") || argument.hasSuffix("/.") ? "/" : ""
    }

    /// The kernel's limit of symbolic links in one path.
    private static let mostLinks = 40

    /// Makes a path absolute and resolves symbolic links outside of Yonder's mounts, a last component only if it leads into one.
    /// Paths in a mount are not accessed, because that could list directories.
    static func resolving(_ text: String) -> String { resolving(text, followsLast: true) }

    /// A path that does not exist where a relative path means nothing.
    private static var workingDirectory: String { Machine.currentDirectory ?? "/(the working directory is gone)" }

    /// - Parameters:
    ///   - followsLast: whether a last component that leads into a mount is resolved, too.
    ///   - keepsParents: whether a `..` behind a name in a mount is left to the daemon.
    static func resolving(_ text: String, followsLast: Bool, keepsParents: Bool = false) -> String {
        let names = Self.names(of: text)
        let mounts = mountsAtStart
        let followed = followsLast ? walk(names, followsLast: true, keepsParents, mounts) : nil
        if let followed, followed.isInMount { return followed.path }
        return walk(names, followsLast: false, keepsParents, mounts).path
    }

    /// The components of a path from the root. The working directory has no links: a `..` before the first name leads to the directory
    /// above it.
    private static func names(of text: String) -> [String] {
        guard text.utf8.first != UInt8(ascii: "/") else { return components(text) }
        var names = components(workingDirectory)
        var rest = components(text)[...]
        while rest.first == ".." {
            rest.removeFirst()
            _ = names.popLast()
        }
        names += rest
        return names
    }

    private static func walk(
        _ names: [String], followsLast: Bool, _ keepsParents: Bool, _ mounts: [String]
    ) -> (path: String, isInMount: Bool) {
        var waiting = names
        var path: [String] = []
        var links = 0
        while !waiting.isEmpty {
            let name = waiting.removeFirst()
            if name == ".." {
                _ = path.popLast()
                continue
            }
            path.append(name)
            let current = "/" + path.joined(separator: "/")
            // The daemon resolves the rest.
            if mounts.contains(where: { $0.utf8.elementsEqual(current.utf8) }) {
                return (joined(path, waiting, keepsParents), true)
            }
            guard followsLast || !waiting.isEmpty, links < mostLinks,
                let target = try? FilePath(fileNamed: current).linkTarget()
            else { continue }
            links += 1
            path.removeLast()
            if target.utf8.first == UInt8(ascii: "/") { path = [] }
            waiting = components(target) + waiting
        }
        return ("/" + path.joined(separator: "/"), false)
    }

    /// Appends the rest of a path to a mount point and resolves `..` lexically, or keeps it where it does not lead out of the mount.
    private static func joined(_ path: [String], _ rest: [String], _ keepsParents: Bool) -> String {
        var depth = 0
        let staysBelow = rest.allSatisfy { name in
            depth += name == ".." ? -1 : 1
            return depth >= 0
        }
        if keepsParents, staysBelow { return "/" + (path + rest).joined(separator: "/") }
        var path = path
        for name in rest {
            if name == ".." { _ = path.popLast() } else { path.append(name) }
        }
        return "/" + path.joined(separator: "/")
    }

    private static func components(_ path: String) -> [String] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }.filter { $0 != "." }
    }

    /// Whether a mount of Yonder, dead or alive, belongs to this domain, or contains this path.
    static func isInMount(_ domain: DomainReference) -> Bool {
        mounts().contains { mount in
            mount.source.utf8.elementsEqual((sourcePrefix + domain.text).utf8)
                || mount.path.utf8.elementsEqual(domain.path.utf8)
                || domain.path.utf8.starts(with: (mount.path + "/").utf8)
        }
    }

    /// Whether there is a mount of Yonder, dead or alive, that may belong to a domain of this state directory. Other users and other
    /// installations have mounts, too, which a daemon started here would know nothing of.
    static var isAnythingMounted: Bool {
        let places = Places(environment: ProcessInfo.processInfo.environment)
        return mounts().contains { mount in
            guard mount.source.utf8.starts(with: sourcePrefix.utf8) else { return false }
            let domain = String(Substring(mount.source.utf8.dropFirst(sourcePrefix.utf8.count)))
            return !domain.isEmpty && FileManager.default.fileExists(atPath: places.domains + "/" + domain)
        }
    }

    /// The source of a mount is this and the name of its domain.
    private static let sourcePrefix = "//yonder/"

    /// The mount points when the first path was resolved: a command may have thousands of paths.
    private static let mountsAtStart = mounts().map(\.path)

    /// Yonder's mounts.
    private static func mounts() -> [(source: String, path: String)] {
        let mounts = (try? MountTable())?.mounts ?? []
        return mounts.filter { $0.type == "fuse.yonder" }.map { ($0.source, FileNameText.text(of: $0.path)) }
    }
}
