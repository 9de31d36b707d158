import FileProvider
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import ProgramProvider

@Suite struct TrustedProgramTests {
    @Test("ACCESS-11: a program that others could have put there is not run", arguments: [0o777, 0o1777, 0o755])
    func directory(mode: Int) throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let folder = try directory.makeDirectory("providers")
        let program = folder.appending("yonder-provider-x")
        try Data("#!/bin/sh\n".utf8).write(to: URL(fileURLWithPath: program.string))
        func set(_ mode: Int, _ path: FilePath) throws {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path.string)
        }
        func code(_ path: FilePath? = nil) -> FileProviderError.Code? {
            do throws(FileProviderError) {
                try TrustedProgram.check((path ?? program).string)
                return nil
            } catch {
                return error.code
            }
        }
        try set(0o755, program)
        try set(mode, folder)
        #expect(code() == (mode == 0o777 ? .providerNotFound : nil))
        let link = directory["yonder-provider-y"]
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: program.string)
        #expect(code(link) == (mode == 0o777 ? .providerNotFound : nil))
        try set(0o757, program)
        #expect(code() == .providerNotFound)
        guard FUSEAvailability.isRoot else { return }
        try set(0o755, program)
        try FileManager.default.setAttributes([.ownerAccountID: 65534], ofItemAtPath: program.string)
        #expect(code() == .providerNotFound)
    }
}
