import FileProviderPaths
import HTTPTransport

/// Stores which trash bin the server has, because the domain's features are needed before the server can be asked.
struct TrashBinStore: Sendable {
    private let records: SurvivingRecords<TrashBin.Kind>
    private let base: HTTPURL
    private static let key = Array("kind".utf8)

    init(in store: ReportingStore, base: HTTPURL) {
        records = SurvivingRecords("webdav.trashbin", in: store)
        self.base = base
    }

    /// Nil for a server without a bin. Costs less than ``bin``.
    var kind: TrashBin.Kind? { records[Self.key] }

    var bin: TrashBin? { kind.flatMap { TrashBin($0, of: base) } }

    func note(_ kind: TrashBin.Kind?) {
        guard kind != self.kind else { return }
        if let kind { records.set(Self.key, kind) } else { records.remove(Self.key) }
    }
}
