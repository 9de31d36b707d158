import FileProvider

/// A provider's store, with a way to tell the user of a failure that the caller cannot return to the system: one that comes
/// when the remote has already made the change.
package struct ReportingStore: Sendable {
    package let store: any ProviderStore
    private let report: @Sendable (String) -> Void

    package init(_ store: any ProviderStore, report: @escaping @Sendable (String) -> Void) {
        self.store = store
        self.report = report
    }

    package init(of manager: any FileProviderManager) {
        self.init(manager.store) { manager.report($0) }
    }

    /// Records that end with the process: for a remote that is tried out before its domain exists.
    package static var temporary: ReportingStore { ReportingStore(InMemoryProviderStore(), report: { _ in }) }

    /// Runs a body and reports its failure.
    ///
    /// - Returns: nil when it failed.
    @discardableResult
    package func attempt<Value>(_ body: (any ProviderStore) throws -> Value) -> Value? {
        do {
            return try body(store)
        } catch let error as FileProviderError where error.code == .domainDisabled {
            // The domain was closed: the records stay as they are for its next start.
            return nil
        } catch {
            fail(error)
            return nil
        }
    }

    /// All records of a namespace. One that cannot be read is reported, left out, and stays in the store.
    package func all<Record>(
        in namespace: ProviderStoreNamespace<Record>, prefix: ProviderStoreKey = ""
    ) -> [(key: ProviderStoreKey, record: Record)] {
        attempt { try $0.list(in: namespace, prefix: prefix, onUnreadable: fail) } ?? []
    }

    /// Stores records, and removes those that are nil, in one transaction.
    package func apply<Record>(
        _ changes: [(key: ProviderStoreKey, record: Record?)], in namespace: ProviderStoreNamespace<Record>
    ) {
        attempt { store in
            try store.write(.committed) { transaction in
                for (key, record) in changes {
                    if let record {
                        try transaction.put(record, at: key, in: namespace)
                    } else {
                        try transaction.remove(key, in: namespace)
                    }
                }
            }
        }
    }

    private func fail(_ error: any Error) {
        report((error as? FileProviderError)?.message ?? "\(error)")
    }
}
