/// A message of the worker: lines of the form `NAME=VALUE`. (sd_notify(3))
package struct NotifyMessage: Hashable, Sendable {
    package enum Watchdog: Hashable, Sendable {
        case alive
        /// The worker reports a failure itself.
        case failed
    }

    package private(set) var isReady = false
    package private(set) var isStopping = false
    /// Whether no worker is to follow this one, however it ends.
    package private(set) var isLast = false
    package private(set) var watchdog: Watchdog?
    package private(set) var status: String?
    package private(set) var storesDescriptors = false
    package private(set) var removesDescriptors = false
    /// The name of the descriptors to store or to remove.
    package private(set) var name: String?

    /// The maximum length of a message in bytes, as systemd has it (PIPE_BUF).
    package static let longest = 4096

    /// Parses a message. Unknown names are ignored, as the protocol requires.
    ///
    /// - Returns: nil for a message that systemd would refuse as well: too long, with a NUL byte, or with a name of
    ///   descriptors that is not valid.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count <= Self.longest, !bytes.contains(0) else { return nil }
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            guard let sign = line.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let value = line[line.index(after: sign)...]
            let isSet = value.elementsEqual("1".utf8)
            switch String(decoding: line[..<sign], as: UTF8.self) {
            case "READY": isReady = isReady || isSet
            case "STOPPING": isStopping = isStopping || isSet
            case "X_LAST": isLast = isLast || isSet
            case "WATCHDOG":
                if isSet { watchdog = watchdog ?? .alive }
                if value.elementsEqual("trigger".utf8) { watchdog = .failed }
            case "STATUS": status = Self.shown(value)
            case "FDSTORE": storesDescriptors = storesDescriptors || isSet
            case "FDSTOREREMOVE": removesDescriptors = removesDescriptors || isSet
            case "FDNAME":
                guard Self.isValid(name: value) else { return nil }
                name = String(decoding: value, as: UTF8.self)
            default: break
            }
        }
    }

    /// Whether descriptors can have this name: 1 to 255 printable ASCII characters without a colon, which separates
    /// the names in LISTEN_FDNAMES.
    static func isValid(name: some Collection<UInt8>) -> Bool {
        (1...255).contains(name.count)
            && name.allSatisfy { $0 >= 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") }
    }

    /// A status on one line of the log.
    private static func shown(_ value: some Collection<UInt8>) -> String {
        String(String(decoding: value.prefix(200), as: UTF8.self).map { ($0.asciiValue ?? 32) < 32 ? "?" : $0 })
    }
}
