/// The warning about a deletion that the remote has refused. (``Warnings/Cause/deletion(of:in:)``)
extension Warnings {
    private static let words = "' was removed here and stays on the remote: "

    /// - Parameter path: from the root of the mount.
    static func text(ofDeletionAt path: String, _ reason: String) -> String { "'\(path)\(words)\(reason)" }

    /// The item of a warning is renamed or moved, or a directory above it is: the warning has its present path.
    func moveDeletion(_ cause: Cause, to path: String) {
        guard let text = text(of: cause), let words = text.firstRange(of: Self.words) else { return }
        let moved = Self.text(ofDeletionAt: path, String(text[words.upperBound...]))
        if moved != text { report(all: [moved], of: cause) }
    }
}
