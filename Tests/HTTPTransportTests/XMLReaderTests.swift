import FileProvider
import HTTPTransport
import Synchronization
import TestSupport
import Testing

@Suite(.tags(.timing)) struct XMLReaderTests {
    @Test(arguments: [1, 2, 3, 7, 64, 100_000])
    func readsTheSameInPiecesOfAnySize(size: Int) throws {
        let text = """
            \u{FEFF}<?xml version="1.0" encoding="UTF-8"?>\r\n<!-- a > comment -->
            <d:multi xmlns:d="DAV:" xmlns="urn:other" a='1 &lt; 2' d:b="x>y">
              <d:response><d:href>/ä&#228;&#xE4;&amp;&quot;&apos;&gt;</d:href><own d:at="1"/></d:response>
              <d:response><![CDATA[<raw> & ]] ]]><sub xmlns="">one\r\ntwo</sub></d:response>
              <d:token>urn:1</d:token>
            </d:multi>

            """
        let bytes = Array(text.utf8)
        var reader = XMLReader()
        var children: [XMLElement] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            children += try reader.feed(bytes[start..<min(start + size, bytes.count)])
        }
        let root = try reader.finish()
        #expect(root.name == XMLName("DAV:", "multi"))
        #expect(root.attributes == [XMLName("", "a"): "1 < 2", XMLName("DAV:", "b"): "x>y"])
        #expect(children.map(\.name.local) == ["response", "response", "token"])
        #expect(children[0].child("DAV:", "href")?.text == "/äää&\"'>")
        #expect(children[0].children[1].name == XMLName("urn:other", "own"))
        #expect(children[0].children[1].attributes == [XMLName("DAV:", "at"): "1"])
        #expect(children[1].text == "<raw> & ]] ")
        #expect(children[1].children.first?.name == XMLName("", "sub"))
        #expect(children[1].children.first?.text == "one\ntwo")
        #expect(children[2].trimmedText == "urn:1")
    }

    @Test func longTextsMayBeCutAnywhere() throws {
        let text = String(repeating: "abc&amp;ä€😀\r\n", count: 2000)
        let expected = String(repeating: "abc&ä€😀\n", count: 2000)
        let bytes = Array("<r><c>\(text)</c></r>".utf8)
        for size in [1500, 1501, 1502, 1503, 1511, 4099] {
            var reader = XMLReader()
            var found: [XMLElement] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                found += try reader.feed(bytes[start..<min(start + size, bytes.count)])
            }
            _ = try reader.finish()
            #expect(found.first?.text.utf8.elementsEqual(expected.utf8) == true)
        }
    }

    @Test(arguments: [
        "", "   ", "text", "<a>", "<a></b>", "<a><b></a></b>", "<a/><b/>", "<a/>text", "<a b></a>", "<a b=c/>",
        "<a b='1' b='2'/>", "<a b='1'c='2'/>", "<a>&unknown;</a>", "<a>&#0;</a>", "<a>&#xD800;</a>", "<a>& </a>",
        "<x:a/>", "<a:b:c xmlns:a='u'/>", "< a/>", "<1a/>", "<!DOCTYPE a><a/>",
        "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "<a><!ENTITY x 'y'></a>",
        "<?xml version='1.0' encoding='ISO-8859-1'?><a/>", "<a b='<'/>", "<html><br></html>",
    ])
    func refusesWhatIsNotWellFormed(text: String) {
        #expect(throws: FileProviderError.self) { try XMLReader.document(Array(text.utf8)) }
    }

    @Test func refusesOtherEncodings() {
        #expect(throws: FileProviderError.self) {
            try XMLReader.document([0xFF, 0xFE, 0x3C, 0, 0x61, 0, 0x2F, 0, 0x3E, 0])
        }
        #expect(throws: FileProviderError.self) {
            try XMLReader.document(Array("<a>".utf8) + [0xFF] + Array("</a>".utf8))
        }
    }

    @Test func capsDepthTextAndSize() throws {
        var limits = XMLLimits()
        limits.depth = 10
        limits.piece = 1000
        limits.element = 2000
        limits.total = 10_000
        func isRefused(_ text: String) -> Bool {
            (try? XMLReader.document(Array(text.utf8), limits: limits)) == nil
        }
        #expect(!isRefused(String(repeating: "<a>", count: 10) + String(repeating: "</a>", count: 10)))
        #expect(isRefused(String(repeating: "<a>", count: 11) + String(repeating: "</a>", count: 11)))
        #expect(isRefused("<a><b>\(String(repeating: "x", count: 1001))</b></a>"))
        #expect(isRefused("<a b='\(String(repeating: "x", count: 1100))'"))
        #expect(isRefused("<a><b>\(String(repeating: "<c>0123456789</c>", count: 200))</b></a>"))
        #expect(!isRefused("<a>\(String(repeating: "<c>0123456789</c>", count: 200))</a>"))
        #expect(isRefused("<a>\(String(repeating: "<c>0123456789</c>", count: 1000))</a>"))
    }

    @Test("HTTP-6: a tag with very many attributes is refused before they are compared", .timeLimit(.minutes(1)))
    func capsAttributes() throws {
        func document(_ count: Int) -> [UInt8] {
            Array("<a><b \((0..<count).map { "a\($0)='1' " }.joined())/></a>".utf8)
        }
        #expect(try XMLReader.document(document(256)).children.first?.attributes.count == 256)
        for count in [257, 60_000] {
            let error = #expect(throws: FileProviderError.self) { _ = try XMLReader.document(document(count)) }
            #expect(error?.code == .malformedResponse && error?.message.contains("256 attributes") == true)
        }
    }

    @Test(
        "HTTP-6: a long tag, comment or text that comes byte by byte is read once", .timeLimit(.minutes(1)),
        arguments: ["<b a='%'/>", "<b><!--%--></b>", "<b><![CDATA[%]]></b>", "<b>%</b>", "<b><?x %?></b>"])
    func readsSmallPiecesOnce(form: String) throws {
        var reader = XMLReader()
        let text =
            "<a>"
            + form.replacing("%", with: String(repeating: "x>", count: 200_000).dropLast(form.contains("?x") ? 1 : 0))
            + "</a>"
        var found: [XMLElement] = []
        for byte in text.utf8 { found += try reader.feed(CollectionOfOne(byte)) }
        _ = try reader.finish()
        #expect(found.count == 1)
    }

    @Test("HTTP-6: very many small elements in one are refused") func capsElements() {
        let text = "<a><b>\(String(repeating: "<c/>", count: 200_000))</b></a>"
        #expect(throws: FileProviderError.self) { try XMLReader.document(Array(text.utf8)) }
        let tag = "<c \((0..<200).map { "a\($0)='' " }.joined())/>"
        let attributes = "<a><b>\(String(repeating: tag, count: 1000))</b></a>"
        #expect(throws: FileProviderError.self) { try XMLReader.document(Array(attributes.utf8)) }
    }

    @Test("HTTP-6: a long name, and a long namespace, are refused", arguments: [1024, 1025])
    func capsNames(length: Int) {
        let name = String(repeating: "n", count: length)
        for text in ["<\(name)/>", "<a \(name)='1'/>", "<a xmlns='\(name)'/>", "<a xmlns:p='\(name)'/>"] {
            let isTaken = (try? XMLReader.document(Array(text.utf8))) != nil
            #expect(isTaken == (length == 1024), "\(text.prefix(20))")
        }
    }

    @Test("HTTP-6: bytes that are no text are not searched again and again", .timeLimit(.minutes(1)))
    func readsWrongBytesOnce() throws {
        var reader = XMLReader()
        _ = try reader.feed(Array("<a><b>".utf8))
        for _ in 0..<200_000 { _ = try reader.feed(CollectionOfOne(0x80 as UInt8)) }
        do {
            _ = try reader.feed(Array("</b></a>".utf8))
            Issue.record("it is taken for text")
        } catch let error as FileProviderError {
            #expect(error.code == .malformedResponse)
        }
    }

    @Test func takesManyElementsAsTheyCome() async throws {
        try await withServer { server, transport in
            let seen = Mutex((count: 0, calls: 0))
            let request = HTTPRequest("PROPFIND", try server.at("/xml?count=20000"))
            let answer = try await transport.sendForXML(
                request, isWanted: { $0.status == 207 },
                take: { elements in seen.withLock { $0 = ($0.count + elements.count, $0.calls + 1) } },
                failure: { FileProviderError(.malformedResponse, "\($0.status)") })
            #expect(answer.root.name == XMLName("DAV:", "many"))
            #expect(seen.withLock { $0.count } == 20_001)
            #expect(seen.withLock { $0.calls } > 10)
            let cut = HTTPRequest("PROPFIND", try server.at("/xml?count=1000&length=20000"))
            let error = await failure {
                _ = try await transport.sendForXML(
                    cut, isWanted: { _ in true }, take: { _ in },
                    failure: { _ in FileProviderError(.malformedResponse) })
            }
            #expect(error?.code == .malformedResponse)
        }
    }

    @Test("HTTP-6: a document that ends early is requested again where what came can be forgotten")
    func repeatsShortDocuments() async throws {
        try await withServer { server, transport in
            let seen = Mutex(0)
            let request = HTTPRequest("PROPFIND", try server.at("/xml/a?count=1000&length=20000&times=2"))
            _ = try await transport.sendForXML(
                request, isWanted: { $0.status == 207 }, take: { elements in seen.withLock { $0 += elements.count } },
                discard: {
                    seen.withLock { $0 = 0 }
                    return true
                },
                failure: { FileProviderError(.malformedResponse, "\($0.status)") })
            #expect(seen.withLock { $0 } == 1001)
            let again = HTTPRequest("PROPFIND", try server.at("/xml/b?count=1000&length=20000"))
            for mayForget in [true, false] {
                let error = await failure {
                    _ = try await transport.sendForXML(
                        again, isWanted: { _ in true }, take: { _ in }, discard: { mayForget },
                        failure: { _ in FileProviderError(.malformedResponse) })
                }
                #expect(error?.code == .malformedResponse)
            }
            let log = try await server.log()
            #expect(log.entries(below: "/xml/a").count == 3)
            #expect(log.entries(below: "/xml/b").count == 5)
        }
    }
}
