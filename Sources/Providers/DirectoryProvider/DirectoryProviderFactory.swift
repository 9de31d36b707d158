import FileProvider
import ProviderDescriptors
import Syscalls
import SystemPackage

/// Makes the providers of sources that are paths of folders.
package struct DirectoryProviderFactory: ProviderFactory {
    package init() {}

    package var descriptor: ProviderDescriptor { .folder }

    package func make(
        for manager: any FileProviderManager, _ settings: ProviderSettings, findings: ProviderFindings?
    ) throws -> any FileProviderReplicatedExtension {
        try DirectoryProvider(root: FilePath(fileNamed: manager.domain.source), manager: manager)
    }
}
