/// A remote that knows by a hidden name that its item is to be removed, however new it is. It has given the name to a file that it removes,
/// so that no other client writes it meanwhile, or to an upload of an earlier process.
package protocol HidingRemote: PathRemote {
    /// Whether a hidden name is that of an item that is to be removed.
    func isRemoval(_ name: String) -> Bool

    /// Ends a removal that was interrupted: removes the file, or gives it its name back where it is not the version that was to be
    /// removed. Does no harm to a removal that another machine is making.
    func finishRemoval(at path: RemotePath) async throws
}
