import ArgumentParser
import Control
import Syscalls

struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON, for scripts.")
    var json = false
}

struct ItemArguments: ParsableArguments {
    @Argument(help: "Paths in a mount.")
    var paths: [AbsolutePath]

    @OptionGroup var output: OutputOptions

    var texts: [String] { paths.map(\.withSlash) }

    /// As ``AbsolutePath/itself``.
    var themselves: [String] { paths.map { $0.itself + $0.slash } }
}

/// The item that a command describes.
struct ItemArgument: ParsableArguments {
    @Argument(help: "A path in a mount.")
    var path: AbsolutePath

    @OptionGroup var output: OutputOptions
}

/// The domain that a command describes, or all of them.
struct DomainArgument: ParsableArguments {
    @Argument(help: "The domain's name, or a path in its mount; all mounted domains by default.")
    var name: DomainReference?

    @OptionGroup var output: OutputOptions
}

extension DomainReference: ExpressibleByArgument {
    package static var defaultCompletionKind: CompletionKind { .domains }

    package init?(argument: String) {
        // A name needs no working directory.
        let isName = !argument.utf8.contains(UInt8(ascii: "/")) && !["", ".", ".."].contains(argument)
        let path = isName ? AbsolutePath.resolving(argument) : AbsolutePath(argument: argument)?.place
        guard let path else { return nil }
        let link = AbsolutePath.resolving(argument, followsLast: false)
        self.init(text: argument, path: path, link: link == path ? nil : link)
    }
}

extension KeptData: ExpressibleByArgument {}

/// A size such as `500M`.
struct ByteCount: ExpressibleByArgument {
    let bytes: Int64

    init?(argument: String) {
        guard let bytes = ByteText.bytes(argument) else { return nil }
        self.bytes = bytes
        let isBare = argument.allSatisfy(\.isNumber)
        missingUnit = isBare && bytes > 0 && bytes < ByteText.leastWithoutUnit ? "\(bytes)G" : nil
    }

    /// The size that was probably meant, where the unit of a small number is missing.
    let missingUnit: String?
}

/// Bytes a second such as `2M`. Slower transfers than 32K would be ended by servers, which wait only some seconds for more.
struct ByteRate: ExpressibleByArgument {
    let bytes: Int64
    static let least: Int64 = 32 << 10

    init?(argument: String) {
        let text = argument.hasSuffix("/s") ? String(argument.dropLast(2)) : argument
        guard let bytes = ByteText.bytes(text) else { return nil }
        self.bytes = bytes
    }
}

/// The value of an option, or `none`, which resets it.
enum Revocable<Value: ExpressibleByArgument>: ExpressibleByArgument {
    case value(Value)
    case none

    init?(argument: String) {
        if argument == "none" {
            self = .none
        } else if let value = Value(argument: argument) {
            self = .value(value)
        } else {
            return nil
        }
    }

    func given<Result>(_ result: (Value) -> Result) -> Given<Result> {
        switch self {
        case .value(let value): .value(result(value))
        case .none: .none
        }
    }
}

/// A duration in seconds, or with the unit `s`, `m`, `h` or `d`.
struct TimeSpan: ExpressibleByArgument {
    let seconds: Double

    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = argument.last.flatMap { units[$0] }
        guard let number = Double(unit == nil ? argument : String(argument.dropLast())),
            case let seconds = number * (unit ?? 1), seconds > 0, seconds < Self.mostSeconds
        else { return nil }
        self.seconds = seconds
    }

    /// Whatever the unit is: `yonder show` prints seconds.
    private static let mostSeconds = 1e14
}

/// Where the names of accounts come from.
protocol AccountNames {
    static func number(of name: String) -> UInt32?
}

enum UserNames: AccountNames {
    static func number(of name: String) -> UInt32? { Accounts.user(named: name) }
}

enum GroupNames: AccountNames {
    static func number(of name: String) -> UInt32? { Accounts.group(named: name) }
}

/// A user or a group, by name or number.
struct AccountNumber<Names: AccountNames>: ExpressibleByArgument {
    let number: UInt32

    init?(argument: String) {
        // The last number means "unchanged" in chown(2).
        guard let number = UInt32(argument) ?? Names.number(of: argument), number < .max else { return nil }
        self.number = number
    }
}

/// Permissions in octal, at most 777.
struct PermissionMask: ExpressibleByArgument {
    let bits: UInt16

    init?(argument: String) {
        guard let bits = UInt16(argument, radix: 8), bits <= 0o777, !argument.hasPrefix("+") else { return nil }
        self.bits = bits
    }
}
