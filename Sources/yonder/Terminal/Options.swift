import ArgumentParser
import Control

/// The options of every command that prints.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON, for scripts.")
    var json = false
}

/// A size such as `500M`.
struct ByteCount: ExpressibleByArgument {
    let bytes: Int64

    init?(argument: String) {
        guard let bytes = ByteText.bytes(argument) else { return nil }
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
        guard let number = Double(unit == nil ? argument : String(argument.dropLast())), number > 0, number < 1e9 else {
            return nil
        }
        seconds = number * (unit ?? 1)
    }
}
