// The program of `scripts/fuzz`: libFuzzer around one parser. Built only with YONDER_FUZZ in the environment.

import Foundation

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

private let parser = ProcessInfo.processInfo.environment["YONDER_FUZZ"].flatMap(Parser.init(rawValue:))

/// The package manager calls the entry of a program by this name.
@_cdecl("Fuzz_main")
public func fuzz(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt {
    guard parser != nil else {
        let names = Parser.allCases.map(\.rawValue).joined(separator: ", ")
        FileHandle.standardError.write(Data("YONDER_FUZZ has to be one of \(names)\n".utf8))
        return 64
    }
    var (count, arguments) = (count, arguments)
    return runDriver(&count, &arguments) { bytes, size in
        do {
            try parser?.parse(Array(UnsafeBufferPointer(start: bytes, count: size)))
        } catch {
            fatalError("\(error)")
        }
        return 0
    }
}
