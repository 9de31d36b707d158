import FileProvider
import ProviderDescriptors
import TarArchive

/// Makes the providers of `tar://` sources. The archive's own target is an example that uses only the public library.
struct TarArchiveFactory: ProviderFactory {
    var descriptor: ProviderDescriptor { .tar }

    func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        try TarArchiveProvider(manager: manager)
    }
}
