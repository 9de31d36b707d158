import SystemPackage
import Volume

/// The errno with which the volume refuses a call; nil if it does not.
func errno(_ body: () throws -> some Any) -> Errno? {
    if case VolumeError.refused(let errno)? = error(of: body) { errno } else { nil }
}

/// What the volume needs before it can answer a call; nil if it answers.
func prerequisite(_ body: () throws -> some Any) -> Prerequisite? {
    if case VolumeError.needs(let prerequisite)? = error(of: body) { prerequisite } else { nil }
}

private func error(of body: () throws -> some Any) -> VolumeError? {
    do {
        _ = try body()
        return nil
    } catch {
        return error as? VolumeError
    }
}
