/// What `yonder doctor` has found about one thing.
struct Finding: Codable, Hashable {
    enum Grade: String, Codable {
        case ok
        /// It works, with a limit or at a risk.
        case warning
        /// Something does not work.
        case error
    }

    var grade: Grade
    /// What was examined, in a word or a path.
    var subject: String
    var text: String
    var advice: String?

    static func ok(_ subject: String, _ text: String) -> Finding { Finding(grade: .ok, subject: subject, text: text) }

    static func warning(_ subject: String, _ text: String, _ advice: String? = nil) -> Finding {
        Finding(grade: .warning, subject: subject, text: text, advice: advice)
    }

    static func error(_ subject: String, _ text: String, _ advice: String? = nil) -> Finding {
        Finding(grade: .error, subject: subject, text: text, advice: advice)
    }
}
