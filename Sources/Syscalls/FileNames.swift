import FileNames
import SystemPackage

/// A name or a link's target as C takes it, from its text (``FileNameText``).
func cName(_ text: String) -> [CChar] {
    FileNameText.bytes(of: text).map(CChar.init(bitPattern:)) + [0]
}

extension FilePath.Component {
    /// The component with a file's name.
    ///
    /// - Parameter name: as ``FileNameText`` has it.
    /// - Returns: nil for what is no name of a file.
    package init?(fileNamed name: String) {
        self.init(platformString: cName(name))
    }
}

extension FilePath {
    /// The path as C takes it: its bytes, UTF-8 or not.
    var cPath: [CChar] {
        withPlatformString { start in
            var path: [CChar] = []
            var next = start
            while next.pointee != 0 {
                path.append(next.pointee)
                next += 1
            }
            return path + [0]
        }
    }

    /// Makes a directory with those on the way to it; what is there is fine. (mkdir)
    package func makeDirectories() throws(Errno) {
        do throws(Errno) {
            try makeDirectory()
        } catch {
            let parent = removingLastComponent()
            guard error == .noSuchFileOrDirectory, parent != self else { throw error }
            try parent.makeDirectories()
            try makeDirectory()
        }
    }
}
