import SystemPackage

extension DaemonStatus {
    /// The warning of a daemon whose keeper has ended without it.
    package static let keeperHasEnded =
        "the keeper has ended, and the mounts would not outlive the daemon; 'yonder shutdown', then 'yonder mount --all' "
        + "starts both again, but files that are open on the mounts fail then"

    /// A warning when the daemon uses another state directory than this process would: systemd, which has started it, does not know
    /// the variables of a shell.
    ///
    /// - Returns: nil for the same one.
    package func otherState(than places: Places) -> String? {
        guard let stateDirectory, FilePath(stateDirectory) != FilePath(places.stateDirectory) else { return nil }
        return "the daemon keeps its domains in '\(stateDirectory)', and not in '\(places.stateDirectory)': set the "
            + "same XDG_STATE_HOME and XDG_CONFIG_HOME for systemd (environment.d(5)) as in the shell, then restart the "
            + "daemon"
    }
}
