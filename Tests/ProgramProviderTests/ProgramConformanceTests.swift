import FileProviderTesting
import TestSupport
import Testing

@Suite(.tags(.server, .long)) struct ProgramConformanceTests {
    @Test("a program that speaks the paths level is a whole provider", arguments: ProviderConformance.Check.allCases)
    func conforms(to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try ServedByProgram() }.run(check)
    }

    @Test("so is one that neither checks conditions nor reads ranges", arguments: ProviderConformance.Check.allCases)
    func plain(to check: ProviderConformance.Check) async throws {
        try await ProviderConformance { try ServedByProgram(fault: "unconditional,whole") }.run(check)
    }
}
