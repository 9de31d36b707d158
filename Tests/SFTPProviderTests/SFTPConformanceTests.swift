import FileProviderTesting
import TestSupport
import Testing

@Suite(.tags(.server, .long), .enabled(if: SFTPFolder.isInstalled)) struct SFTPConformanceTests {
    @Test(arguments: ProviderConformance.Check.allCases)
    func conforms(to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try SFTPFolder() }.run(check)
    }

    /// Without each of the extensions that are used.
    @Test(arguments: ProviderConformance.Check.allCases)
    func conformsWithoutExtensions(to check: ProviderConformance.Check) async throws {
        let refused = "posix-rename,fsync,statvfs,fstatvfs,lsetstat,hardlink,limits,copy-data"
        try await ProviderConformance { try SFTPFolder(SFTPFolder.program + " -P " + refused) }.run(check)
    }
}

/// Through `ssh`, with the servers that are installed.
@Suite(.tags(.server, .long)) struct SSHConformanceTests {
    @Test(arguments: SSHServer.Kind.installed, ProviderConformance.Check.allCases)
    func conforms(_ kind: SSHServer.Kind, to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try SFTPFolder(try await SSHServer.start(kind)) }.run(check)
    }
}
