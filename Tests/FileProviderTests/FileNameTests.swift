import FileNames
import FileProvider
import Testing

/// Names that are bytes, as text.
@Suite struct FileNameTests {
    @Test func plainNamesAreTheirOwnText() {
        for name in ["a", "caf\u{e9}", "cafe\u{301}", "🌍", "\u{F0000}", "\u{10FF7F}"] {
            #expect(FileNameText.text(of: Array(name.utf8)).utf8.elementsEqual(name.utf8))
            #expect(FileNameText.bytes(of: name) == Array(name.utf8))
            #expect(FileNameText.isUTF8(name))
            #expect(FileNameText.byteCount(of: name) == name.utf8.count)
        }
    }

    @Test func namesSurviveConversionToTextAndBack() {
        var generator = SystemRandomNumberGenerator()
        // Bytes of which valid, broken and reserved sequences are likely.
        let usual: [UInt8] = [
            0x61, 0x2E, 0xC3, 0xA9, 0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0xF4, 0x8F, 0xBE, 0xBF, 0x80, 0xFF, 0xED, 0xA0,
        ]
        var names: [[UInt8]] = [[0xFF], [0xC3], [0xF4, 0x8F, 0xBE, 0x80], [0xF4, 0x8F, 0xBF], [0xED, 0xA0, 0x80]]
        for _ in 0..<20_000 {
            names.append((0..<Int.random(in: 1...8)).map { _ in usual.randomElement(using: &generator) ?? 0x61 })
        }
        var texts: [[UInt8]: [UInt8]] = [:]
        for name in names {
            let text = FileNameText.text(of: name)
            #expect(FileNameText.bytes(of: text) == name)
            #expect(FileNameText.byteCount(of: text) == name.count)
            #expect(FileNameText.isNormal(text))
            // No two names have one text.
            if let other = texts.updateValue(name, forKey: Array(text.utf8)) { #expect(other == name) }
        }
    }

    @Test func limitsCountTheBytesOfTheName() {
        let longest = FileNameText.text(of: [UInt8](repeating: 0xFF, count: 255))
        #expect(FileProviderItem.defect(ofFilename: longest) == nil)
        #expect(FileProviderItem.defect(ofFilename: longest + "a") != nil)
        // A text that stands for the bytes of another is no name.
        #expect(FileProviderItem.defect(ofFilename: "\u{10FFC3}\u{10FFA9}") != nil)
        #expect(FileProviderItem.defect(ofFilename: "\u{10FFC3}") == nil)
    }
}
