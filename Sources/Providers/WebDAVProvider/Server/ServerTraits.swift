import FileProviderPaths

extension RemoteTraits {
    /// The traits of a server, as far as they are known.
    ///
    /// - Parameter reportRemark: how changes are detected, as a phrase that follows the server's name.
    init(of server: WebDAVServer, reportRemark: String?) {
        self.init()
        let capabilities = server.capabilityStore.capabilities
        let keepsAttributes = capabilities?.mayKeepAttributes ?? false
        checksConditions = capabilities?.movesConditionally ?? false
        concurrentCalls = WebDAVServer.concurrentCalls
        // What is not known yet is taken for so: content with another date is another client's then.
        storesModificationDates = capabilities?.mayKeepAttributes ?? true || server.hasIdentifiers
        storesPermissions = keepsAttributes
        movesChangeTags = capabilities?.tagsSurviveMoves == false
        directoryTagsCoverTrees = server.hasIdentifiers
        hasTrash = server.trash.store.kind != nil
        listsHiddenNames = capabilities?.listsHiddenNames ?? true
        let name = server.announcement.name.map { "the server (\($0.prefix(60)))" } ?? "the server"
        peculiarities = Self.remarks(about: server, reportRemark).map { "\(name) \($0)" }
    }

    /// Sentences without the server's name.
    private static func remarks(about server: WebDAVServer, _ reportRemark: String?) -> [String] {
        let capabilities = server.capabilityStore.capabilities
        var remarks: [String] = []
        if !server.hasETags || capabilities?.tagsFollowContent == false {
            remarks.append(
                "tells contents apart by length and time, to the second: what another machine writes twice within a "
                    + "second may be noticed only at the next change")
        }
        if let capabilities, !capabilities.movesConditionally {
            remarks.append(
                "keeps to no conditions: each change looks first, and what another machine changes in that very moment "
                    + "is overwritten")
        }
        for (fate, consequence) in [
            (ServerCapabilities.NameFate.sent, "cannot be renamed"), (.lost, "stay on this machine"),
        ] {
            let parts = ServerCapabilities.OddPart.allCases.filter { capabilities?.oddNames[$0] == fate }
            if parts.isEmpty { continue }
            let list = parts.map(\.rawValue).joined(separator: " or ")
            remarks.append("does not keep names with \(list) in them: such items \(consequence)")
        }
        if let capabilities, !capabilities.listsHiddenNames {
            remarks.append(
                "lists nothing whose name begins with a dot: what other machines call so is not seen, and goes with its "
                    + "directory")
        }
        if let capabilities, !capabilities.mayKeepAttributes {
            remarks.append(
                "keeps no properties of ours: modes, and dates that are not those of an upload, stay on this machine")
        }
        if let kind = server.trash.store.kind {
            remarks.append(
                "has a trash bin: it is the trash of this domain, and keeps what is deleted here, too"
                    + (kind == .ownCloud
                        ? "; what is in it cannot be read unless it was here before" : ""))
        }
        if let reportRemark { remarks.append(reportRemark) }
        if let capabilities, !capabilities.refusesOverwriting {
            remarks.append("lets a move overwrite: each move looks first")
        }
        return remarks
    }
}
