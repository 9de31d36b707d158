import CSyscalls
import SystemPackage

extension FileDescriptor {
    /// The number of columns of a terminal; nil for anything else, and where it is unknown. (ioctl with TIOCGWINSZ)
    package var columns: Int? {
        let columns = yonder_columns(rawValue)
        return columns > 0 ? Int(columns) : nil
    }

    /// The number of rows of a terminal; nil for anything else, and where it is unknown. (ioctl with TIOCGWINSZ)
    package var rows: Int? {
        let rows = yonder_rows(rawValue)
        return rows > 0 ? Int(rows) : nil
    }
}
