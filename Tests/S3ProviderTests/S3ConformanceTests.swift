import FileProviderTesting
import Testing

@Suite struct S3ConformanceTests {
    @Test(arguments: ProviderConformance.Check.allCases)
    func conforms(to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try await Bucket() }.run(check)
    }
}
