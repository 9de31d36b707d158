import Glibc

/// The file that tells of workers that crash in a loop, for `yonder status`. It exists while they do.
struct CrashReport {
    let path: String?

    /// - Parameters:
    ///   - end: how the last worker has ended.
    ///   - pause: the time until the next start, in milliseconds.
    func write(crashes: Int, end: String, pause: Int) {
        guard let path else { return }
        let next = time(nil) + (pause + 999) / 1000
        let text = "keeper=\(getpid())\ncrashes=\(crashes)\nend=\(end)\nnext=\(next)\n"
        let file = open(path + ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { return }
        let written = Glibc.write(file, text, text.utf8.count)
        close(file)
        guard written == text.utf8.count, rename(path + ".new", path) == 0 else {
            unlink(path + ".new")
            return
        }
    }

    func remove() {
        if let path { unlink(path) }
    }
}
