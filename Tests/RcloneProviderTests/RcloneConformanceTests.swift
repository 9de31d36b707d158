import FileProviderTesting
import TestSupport
import Testing

@Suite(.tags(.server, .long), .enabled(if: RcloneFolder.isInstalled)) struct RcloneConformanceTests {
    @Test("RCLONE-1: backends of rclone conform", arguments: RcloneFolder.backends, ProviderConformance.Check.allCases)
    func conforms(_ backend: RcloneFolder.Backend, to check: ProviderConformance.Check) async throws {
        // Encrypted names are longer: a folder of this machine takes none of 255 bytes.
        if backend == .crypt, check == .namesAreKept { return }
        try await ProviderConformance { try await RcloneFolder(backend) }.run(check)
    }
}
