import FileNames
import Glibc
import SystemPackage

func cName(_ text: String) -> [CChar] {
    FileNameText.bytes(of: text).map(CChar.init(bitPattern:)) + [0]
}

extension FilePath.Component {
    /// The path component with a file name.
    ///
    /// - Parameter name: encoded by ``FileNameText``.
    /// - Returns: nil if it is not valid as a file name.
    package init?(fileNamed name: String) {
        self.init(platformString: cName(name))
    }

    /// The component as a file name, encoded by ``FileNameText``.
    package var fileName: String {
        withPlatformString { FileNameText.text(of: UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }
}

extension FilePath {
    /// The path of a text in which ``FileNameText`` encodes bytes that are not UTF-8.
    package init(fileNamed text: String) {
        self.init(platformString: cName(text))
    }

    /// The path as a text, encoded by ``FileNameText``. `string` replaces bytes that are not UTF-8.
    package var fileNameText: String {
        withPlatformString { FileNameText.text(of: UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
    }

    var cPath: [CChar] {
        withPlatformString { Array(UnsafeBufferPointer(start: $0, count: strlen($0) + 1)) }
    }
}
