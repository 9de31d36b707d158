import ArgumentParser
import Control
import Foundation

extension Yonder {
    struct Doctor: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Find what is wrong with this machine, the daemon and the remotes, and say what to do.",
            discussion: """
                Changes nothing; where systemd listens for the daemon, it is started, as by any command. The exit status is 1 if \
                something does not work.
                """)

        @OptionGroup var output: OutputOptions

        func run() async throws {
            let places = Places(environment: ProcessInfo.processInfo.environment).ofRunningDaemon
            let findings =
                MachineExamination().findings + StateExamination(places: places).findings
                + (await DaemonExamination(places: places).findings())
            try Output(output).print(findings) { findings.flatMap(Self.lines) }
            if findings.contains(where: { $0.grade == .error }) { throw ExitCode(1) }
        }

        private static func lines(for finding: Finding) -> [String] {
            let grade = finding.grade.rawValue.padding(toLength: 8, withPad: " ", startingAt: 0)
            let advice = finding.advice.map { ["         \($0)"] } ?? []
            return ["\(grade) \(finding.subject): \(finding.text)"] + advice
        }
    }
}
