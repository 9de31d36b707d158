import ArgumentParser
import Control

extension Yonder {
    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Compare the database, the contents and the remote of a domain, mounted or not.",
            discussion: """
                Nothing is uploaded during the check. --repair repairs what it can: content that does not match is moved \
                to the domain's folder 'recovered' and never deleted; a damaged database is rebuilt from the remote. The \
                exit status is 1 if a problem is left.
                """)

        @Argument(help: "The domain's name, or a path in its mount; all known domains by default.")
        var name: DomainReference?

        @Flag(help: "Also fetch every local file and compare its bytes.")
        var content = false

        @Flag(help: "Repair problems.")
        var repair = false

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let daemon = DaemonConnection()
            _ = try await daemon.start()
            let result = try await daemon.perform(.check(name, comparesContent: content, isRepairing: repair))
            guard case .checked(let reports) = result else { throw unexpected(result) }
            for report in reports {
                for problem in report.problems where !problem.isMended {
                    Output.complain("\(problem.path ?? report.name): \(problem.message)")
                }
                if let reason = report.notCompared {
                    Output.complain("\(report.name): not compared with the remote: \(reason)")
                }
            }
            try Output(output).print(reports) { reports.flatMap(Self.lines) }
            if !reports.allSatisfy(\.isSound) { throw ExitCode(1) }
        }

        static func lines(_ report: CheckReport) -> [String] {
            let mended = report.problems.filter(\.isMended)
            let left = report.problems.count - mended.count
            var summary =
                "\(report.name): \(Output.count(report.items, "item")), "
                + "\(Output.count(report.directories, "directory", "directories")) compared"
            if report.files > 0 {
                summary += ", \(Output.count(report.files, "file")) (\(ByteText.text(report.bytes)))"
            }
            let verdict = report.notCompared == nil ? "all is well" : "nothing is wrong here"
            summary += left > 0 ? "; \(Output.count(left, "problem"))" : "; \(verdict)\(mended.isEmpty ? "" : " now")"
            if let unsent = report.unsent, unsent > 0 {
                summary += "; \(Output.count(unsent, "change")) \(unsent == 1 ? "is" : "are") not on the remote yet"
            }
            return mended.map { "mended: \($0.path ?? report.name): \($0.message)" } + [summary]
        }
    }
}
