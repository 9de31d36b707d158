import Foundation
import SystemPackage

extension Error {
    /// The POSIX error in words; Foundation's description if there is none.
    var reason: String {
        if let error = self as? Errno { return error.description }
        let below = (self as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
        guard let below, below.domain == NSPOSIXErrorDomain else { return localizedDescription }
        return Errno(rawValue: CInt(truncatingIfNeeded: below.code)).description
    }
}
