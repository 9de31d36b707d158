import SystemPackage
import TestSupport
import Testing

extension RealMount {
    /// A program that makes files without a pause.
    @Suite(.tags(.timing)) struct BusyWriting {
        @Test("SEND-4: the remote gets files while a program goes on making others")
        func filesArriveMeanwhile() async throws {
            try await Installation.mounted { installation async throws in
                let script = """
                    import os, sys, time
                    end, made = time.monotonic() + 6, 0
                    while time.monotonic() < end:
                        made += 1
                        with open(f"{sys.argv[1]}/f{made}", "w") as file:
                            file.write(str(made))
                        time.sleep(1 / 30)
                    print(made, len([name for name in os.listdir(sys.argv[2]) if name.startswith("f")]))
                    """
                let outcome = try await Command.python(script, installation.mount.string, installation.source.string)
                let numbers = outcome.line.split(separator: " ").compactMap { Int($0) }
                try #require(numbers.count == 2, "\(outcome.output)\(outcome.errors)")
                #expect(numbers[1] > numbers[0] / 3, "\(numbers[1]) of \(numbers[0]) had arrived")
                try await installation.expectSent()
            }
        }
    }
}
