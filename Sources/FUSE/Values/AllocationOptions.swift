/// The mode of `fallocate(2)`; empty allocates and extends the file if needed.
package struct AllocationOptions: OptionSet, Hashable, Sendable {
    package var rawValue: Int32

    package init(rawValue: Int32) { self.rawValue = rawValue }

    package static var keepSize: AllocationOptions { AllocationOptions(rawValue: 0x01) }
    package static var punchHole: AllocationOptions { AllocationOptions(rawValue: 0x02) }
    package static var zeroRange: AllocationOptions { AllocationOptions(rawValue: 0x10) }
}
