import ArgumentParser
import Control

/// What every command that prints takes.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON, for scripts.")
    var json = false
}

/// A number of bytes, such as `500M`.
struct ByteCount: ExpressibleByArgument {
    let bytes: Int64

    init?(argument: String) {
        guard let bytes = ByteText.bytes(argument) else { return nil }
        self.bytes = bytes
    }
}

/// An option's value, or the word that takes away the one of before.
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

/// A length of time as people write it: seconds, or with `s`, `m`, `h` or `d` at its end.
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
