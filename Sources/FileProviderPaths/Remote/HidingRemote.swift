/// A remote that gives a file a hidden name before it removes it, so that no other client writes it meanwhile.
package protocol HidingRemote: PathRemote {
    /// Whether a hidden name is that of a file that is to be removed.
    func isRemoval(_ name: String) -> Bool

    /// Ends a removal that was interrupted: removes the file, or gives it its name back where it is not the version that was to be
    /// removed. Does no harm to a removal that another machine is making.
    func finishRemoval(at path: RemotePath) async throws
}
