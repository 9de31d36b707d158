import DirectoryProvider
import FileProvider
import SystemPackage
import TarArchive

/// Which provider serves which source: the one place that knows them all.
enum ProviderCatalog {
    /// Makes the provider for a domain.
    ///
    /// - Throws: `providerNotFound` for a source that nobody serves; what the provider says.
    static func provider(for manager: any FileProviderManager) throws -> any FileProviderReplicatedExtension {
        let source = manager.domain.source
        if source.utf8.first == UInt8(ascii: "/") {
            return try DirectoryProvider(root: FilePath(source), manager: manager)
        }
        if source.utf8.starts(with: TarArchiveProvider.scheme.utf8) { return try TarArchiveProvider(manager: manager) }
        throw FileProviderError(
            .providerNotFound,
            "no provider serves '\(source)': a source is the absolute path of a folder, or tar:// and that of an archive"
        )
    }
}
