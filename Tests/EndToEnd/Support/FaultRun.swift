import Foundation

/// What `scripts/faults` asks for.
enum FaultRun {
    private static let environment = ProcessInfo.processInfo.environment

    static var seconds: Int? { environment["YONDER_FAULT_SECONDS"].flatMap { Int($0) } }
    static var isKilling: Bool { environment["YONDER_FAULT_KILL"] == "1" }

    /// - Parameter seed: the one of a short run. A long run without YONDER_SEED has a random one.
    static func seed(usually seed: UInt32) -> UInt32 {
        environment["YONDER_SEED"].flatMap { UInt32($0) }
            ?? (hasTimeForLongTests ? UInt32.random(in: 0...UInt32.max) : seed)
    }
}
