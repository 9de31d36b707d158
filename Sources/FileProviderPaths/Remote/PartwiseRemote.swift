/// A remote that may move a directory part by part: after an interruption some of it is in either place.
package protocol PartwiseRemote: PathRemote {
    /// What a directory consists of that is about to be moved; nil if it is moved as a whole.
    ///
    /// - Throws: ``RemoteConditionFailure`` when something is in the new place: what is found there later is of the move.
    func parts(of path: RemotePath, toMoveTo newPath: RemotePath) async throws -> DirectoryParts?

    /// Moves what is left of a directory in its old place, and nothing that is not one of its parts.
    func finishMove(of parts: DirectoryParts, from path: RemotePath, to newPath: RemotePath) async throws
}
