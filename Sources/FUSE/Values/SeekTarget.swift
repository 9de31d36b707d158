/// The target of an `lseek(2)` that the kernel does not handle itself.
package enum SeekTarget: Int32, Hashable, Sendable {
    case data = 3
    case hole = 4
}
