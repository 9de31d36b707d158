import FileProvider
import HTTPTransport
import PathAddressing

/// The files of a probe, and their removal.
extension CapabilityProbe {
    /// The files of one probe.
    struct Names {
        var prefix: String
        var plain: [RemotePath]
        var folder: RemotePath
        var odd: [NameProbe]
    }

    static func names(_ prefix: RemotePath) -> Names {
        let (directory, name) = (prefix.parent, prefix.name ?? HiddenName.prefix)
        return Names(
            prefix: name, plain: (1...8).map { directory.appending("\(name)-\($0)") },
            folder: directory.appending("\(name)-9"),
            // Names that are not listed everywhere go by name.
            odd: ServerCapabilities.OddPart.allCases.enumerated().map { NameProbe($1, $0, name, in: directory) })
    }

    /// Removes all files of a probe, also those that the server has given other names.
    ///
    /// - Parameter prefix: what their names begin with, in their directory.
    /// - Returns: whether the server has answered everything.
    static func removeAll(of prefix: RemotePath, on remote: WebDAVRemote) async -> Bool {
        let trial = CapabilityProbe(remote: remote, directory: prefix.parent, server: nil)
        let known = names(prefix)
        var listed: [String]?
        do {
            listed = try await trial.names(beginningWith: known.prefix)
        } catch let error as FileProviderError where error.code == .noSuchItem {
            // It has gone with its directory.
            return true
        } catch {}
        let paths = known.plain + known.odd.flatMap(\.paths) + (listed ?? []).map { prefix.parent.appending($0) }
        let isListed = listed != nil
        return await withTaskGroup(of: Bool.self) { group in
            for path in Set(paths) { group.addTask { await remote.deleteHidden(path, isDirectory: false) != nil } }
            return await group.reduce(isListed) { $0 && $1 }
        }
    }

    func names(beginningWith prefix: String) async throws -> [String] {
        for attempt in 1... {
            do {
                var names: [String] = []
                try await remote.visitListing(of: directory) { part in
                    names += part.entries.map(\.name).filter { $0.utf8.starts(with: prefix.utf8) }
                    return true
                }
                return names
            } catch let error as FileProviderError where error.code == .malformedResponse && attempt < 4 {
                // A file of another client may disappear at the same time.
                try await Task.sleep(for: .milliseconds(100 * attempt))
            }
        }
        return []
    }

    /// The files with which one kind of name is tried.
    struct NameProbe: Sendable {
        let part: ServerCapabilities.OddPart
        let source: RemotePath
        let moved: RemotePath
        let sent: RemotePath

        init(_ part: ServerCapabilities.OddPart, _ number: Int, _ prefix: String, in directory: RemotePath) {
            self.part = part
            source = directory.appending("\(prefix)-from-\(number)")
            moved = directory.appending("\(prefix)-a\(part.example)a")
            sent = directory.appending("\(prefix)-b\(part.example)b")
        }

        var paths: [RemotePath] { [source, moved, sent] }
        var sentName: [UInt8] { Array((sent.name ?? "").utf8) }
    }
}
