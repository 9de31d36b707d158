import FileProviderTesting
import TestSupport
import Testing

@Suite(.tags(.server, .long)) struct S3ConformanceTests {
    @Test(arguments: ObjectStoreProgram.Kind.installed, ProviderConformance.Check.allCases)
    func conforms(_ kind: ObjectStoreProgram.Kind, to check: ProviderConformance.Check) async throws {
        // No key of moto's has a line end in it.
        if kind == .moto, check == .namesAreKept { return }
        try await ProviderConformance { try await Bucket(on: kind) }.run(check)
    }
}
