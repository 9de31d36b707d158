// The program of `scripts/fuzz`: libFuzzer around one parser. Built only with YONDER_FUZZ in the environment.

import Foundation

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

private let parser: Parser = {
    let name = ProcessInfo.processInfo.environment["YONDER_FUZZ"] ?? ""
    guard let parser = Parser(rawValue: name) else {
        let names = Parser.allCases.map(\.rawValue).joined(separator: ", ")
        fatalError("YONDER_FUZZ is '\(name)', and has to be one of \(names)")
    }
    return parser
}()

/// The package manager calls the entry point of a program by this name.
@_cdecl("Fuzz_main")
public func run(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> CInt {
    var (count, arguments) = (count, arguments)
    return runDriver(&count, &arguments, parse)
}

/// libFuzzer's own entry point, which is linked and not used, refers to a function of this name.
@_cdecl("LLVMFuzzerTestOneInput")
public func parse(_ bytes: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    do {
        try parser.parse(Array(UnsafeBufferPointer(start: bytes, count: size)))
    } catch {
        fatalError("\(error)")
    }
    return 0
}
