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
