import HTTPTransport
import Testing

@Suite struct HTTPWordsTests {
    @Test func addressesAreTakenAsTheyStand() throws {
        let url = try #require(HTTPURL("HTTPS://Example.ORG:8443/a%20b//c/../d?x=1&y#frag"))
        #expect(url.isSecure && url.host == "example.org" && url.port == 8443)
        #expect(url.target == "/a%20b//c/../d?x=1&y")
        #expect("\(url)" == "https://example.org:8443/a%20b//c/../d?x=1&y")
        #expect(HTTPURL("http://[::1]:80")?.description == "http://[::1]/")
        #expect(HTTPURL("http://host?x")?.target == "/?x")
    }

    @Test(arguments: [
        "ftp://host/", "http://", "http:///path", "http://user:password@host/", "http://host:0/", "http://host:99999/",
        "http://host:x/", "http://ho st/", "host/path", "http://host/\u{7F}", "http://host/ä", "http://[::1",
    ])
    func refusesInvalidAddresses(text: String) {
        #expect(HTTPURL(text) == nil)
    }

    @Test func referencesAreResolved() throws {
        let base = try #require(HTTPURL("http://host/a/b/c?q"))
        #expect(base.resolving("d/e?x")?.description == "http://host/a/b/d/e?x")
        #expect(base.resolving("../../d")?.description == "http://host/d")
        #expect(base.resolving("../../../../d/.")?.description == "http://host/d/")
        #expect(base.resolving("/x/../y")?.description == "http://host/x/../y")
        #expect(base.resolving("//other/x")?.description == "http://other/x")
        #expect(base.resolving("https://other:1/x")?.description == "https://other:1/x")
        #expect(base.resolving("?new")?.description == "http://host/a/b/c?new")
        #expect(base.resolving("http://user@other/") == nil || base.resolving("http://user@other/")?.host == "host")
    }

    @Test func fieldsAreFoundInAnyCase() {
        var fields: HTTPFields = ["ETag": "1"]
        fields.add("allow", "GET, HEAD")
        fields.add("Allow", "PUT")
        #expect(fields["etag"] == "1")
        #expect(fields.values(of: "ALLOW") == ["GET, HEAD", "PUT"])
        fields["ETAG"] = nil
        #expect(fields["ETag"] == nil)
    }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
    ])
    func datesOfHTTPAreRead(text: String) {
        #expect(HTTPDate.seconds(from: text) == 784_111_777)
    }

    @Test func datesOfISO8601AreRead() throws {
        let date = try #require(HTTPDate.timestamp(iso8601: "2009-10-12T17:50:30.250Z"))
        #expect(date == (1_255_369_830, 250_000_000))
        #expect(try #require(HTTPDate.timestamp(iso8601: "2009-10-12T19:50:30+02:00")) == (1_255_369_830, 0))
        #expect(HTTPDate.timestamp(iso8601: "2009-10-12") == nil)
        #expect(HTTPDate.timestamp(iso8601: "2009-13-12T17:50:30Z") == nil)
        #expect(HTTPDate.seconds(from: "yesterday") == nil)
        #expect(HTTPDate.compact(784_111_777) == "19941106T084937Z")
        #expect(HTTPDate.compact(1_709_210_096) == "20240229T123456Z")
        #expect(HTTPDate.compact(-1) == "19691231T235959Z")
        #expect(HTTPDate.text(784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
    }

    @Test("text is escaped for XML, also where a combining mark follows")
    func textIsEscaped() {
        for (text, escaped) in [
            ("a&b<c>&\u{301}", "a&amp;b&lt;c&gt;&amp;\u{301}"), ("<\u{FE0F}>\"", "&lt;\u{FE0F}&gt;&quot;"),
        ] {
            #expect(text.escapedForXML.utf8.elementsEqual(escaped.utf8))
        }
    }

    @Test func contentRangesAreRead() {
        #expect(ContentRange("bytes 0-99/200")?.range == 0..<100)
        #expect(ContentRange("bytes 5-5/*")?.total == nil)
        for text in ["bytes */200", "bytes 9-5/20", "bytes 0-99/50", "items 0-1/2", "bytes -1-5/9", ""] {
            #expect(ContentRange(text) == nil)
        }
    }

    @Test func proxiesAreThoseOfTheEnvironment() throws {
        let settings = ProxySettings(environment: [
            "http_proxy": "http://proxy:3128", "HTTPS_PROXY": "http://user:secret@proxy:3128/",
            "no_proxy": "example.org, .internal,10.0.0.1:81",
        ])
        func uses(_ text: String) throws -> Bool { settings.usesProxy(for: try #require(HTTPURL(text))) }
        #expect(try uses("http://other/") && uses("https://other/") && uses("http://notexample.org/"))
        #expect(try !uses("http://example.org/") && !uses("https://a.example.org/") && !uses("http://x.internal/"))
        #expect(try !uses("http://10.0.0.1:81/") && uses("http://10.0.0.1/"))
        #expect(try !uses("http://localhost:9000/") && !uses("http://127.0.0.1/") && !uses("http://[::1]/"))
        // Names that only begin as an address of this machine.
        #expect(try uses("http://127.0.0.1.example.net/") && uses("http://127.example.net/"))
        #expect(settings.complaints.isEmpty)
        let strange = ProxySettings(environment: ["https_proxy": "socks5://me:secret@proxy"])
        #expect(strange.complaints.count == 1 && !strange.complaints[0].contains("secret"))
        #expect(ProxySettings(environment: ["HTTP_PROXY": "http://evil"]).complaints.isEmpty)
    }
}
