/// What `lseek(2)` looks for. The kernel answers the other kinds of seeking itself.
package enum SeekTarget: Int32, Hashable, Sendable {
    case data = 3
    case hole = 4
}
