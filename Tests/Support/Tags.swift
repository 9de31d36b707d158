import Testing

/// What a suite needs beside a processor. `scripts/test` reads these tags from the line of `@Suite`: they stand on suites only.
extension Tag {
    /// Mounts a file system.
    @Tag package static var mount: Self
    /// Starts a server program on loopback.
    @Tag package static var server: Self
    /// Measures time, or fails when the machine is busy: runs alone.
    @Tag package static var timing: Self
    /// Takes a minute or more: each test runs in a process of its own.
    @Tag package static var long: Self
}
