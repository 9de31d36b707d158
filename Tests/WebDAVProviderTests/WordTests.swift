import FileProvider
import FileProviderPaths
import HTTPTransport
import Testing

@testable import WebDAVProvider

@Suite("WebDAV words")
struct WordTests {
    @Test("sources: server, collection and user, and never a password")
    func sources() throws {
        let plain = try WebDAVSource("webdav://example.org:8080/a b/ü")
        #expect(plain.url.description == "http://example.org:8080/a%20b/%C3%BC/")
        let secure = try WebDAVSource("webdavs://some%40one@example.org")
        #expect(secure.url.description == "https://example.org/" && secure.user == "some@one")
        for wrong in [
            "webdav://user:secret@example.org/", "http://example.org/", "webdav:///path", "webdav://host/?query",
            "webdav://host:99999/",
        ] {
            do {
                _ = try WebDAVSource(wrong)
                Issue.record("'\(wrong)' is taken")
            } catch {
                #expect(error.code == .providerNotFound && !error.message.contains("secret"))
            }
        }
    }

    @Test("PATH-3: a tag of a whole second tells no more than a date")
    func tagsOfWholeSeconds() {
        #expect(ETag.isOfWholeSecond("\"ad-\(String(1_577_836_800_000_000, radix: 16))\"", 1_577_836_800))
        #expect(!ETag.isOfWholeSecond("\"ad-\(String(1_577_836_800_000_001, radix: 16))\"", 1_577_836_800))
        #expect(!ETag.isOfWholeSecond(nil, 1) && !ETag.isOfWholeSecond("\"x\"", nil))
    }

    @Test("DAV-26: a report of more changes than are kept in memory tells none, nor does one that it is a part of")
    func largeReports() {
        var part = SyncCollection.Part()
        part.changes.present.insert(RemotePath(["file"]))
        part.count("/file")
        var whole = SyncCollection.Part()
        whole.append(part)
        #expect(whole.changes == part.changes && !whole.changes.isEmpty && !whole.isUnclear)
        let long = String(repeating: "x", count: 1 << 20)
        for _ in 0..<SyncCollection.Part.mostBytes >> 20 { part.count(long) }
        #expect(part.isUnclear && part.changes.isEmpty)
        whole.append(part)
        #expect(whole.isUnclear && whole.changes.isEmpty)
    }

    @Test("DAV-26: a sync token that is too long to be kept is none", arguments: [4096, 4097])
    func longTokens(length: Int) throws {
        let token = String(repeating: "t", count: length)
        let property = "<d:prop><d:sync-token>\(token)</d:sync-token></d:prop><d:status>HTTP/1.1 200 OK</d:status>"
        let response = "<d:response><d:href>/</d:href><d:propstat>\(property)</d:propstat></d:response>"
        let text = "<d:multistatus xmlns:d='DAV:'>\(response)</d:multistatus>"
        let element = try #require(try XMLReader.document(Array(text.utf8)).children.first)
        #expect(DAVResource(element)?.syncToken == (length == 4096 ? token : nil))
    }

    @Test("digests as in RFC 7616")
    func digests() throws {
        for (algorithm, response) in [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ] {
            let fields: HTTPFields = [
                "WWW-Authenticate":
                    "Basic realm=\"x, y\", Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", "
                    + "algorithm=\(algorithm), nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", "
                    + "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            ]
            let challenges = Challenge.all(in: fields)
            #expect(challenges.map(\.scheme) == ["basic", "digest"])
            #expect(challenges.first?.parameters["realm"] == "x, y")
            let answer = try #require(challenges.last.flatMap(DigestAnswer.init))
            let text = answer.authorization(
                "GET", "/dir/index.html", WebDAVCredentials(user: "Mufasa", password: "Circle of Life"), count: 1,
                clientNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
            #expect(text.contains("response=\"\(response)\""), "\(text)")
        }
    }

    @Test("netrc: the machine's own entry, else the default one, and comments and macros are passed over")
    func netrc() {
        let text = """
            # machine example.org login comment password comment
            machine other.org login a password b
            macdef init
            machine example.org login macro password macro

            machine example.org
                login "some one"
                password "a \\"quoted\\" word"
            machine example.org login second password two
            default login any password thing
            """
        #expect(Netrc.credentials(for: "EXAMPLE.org", user: nil, in: text)?.password == "a \"quoted\" word")
        #expect(Netrc.credentials(for: "example.org", user: "second", in: text)?.password == "two")
        #expect(Netrc.credentials(for: "third.org", user: nil, in: text)?.user == "any")
        #expect(Netrc.credentials(for: "third.org", user: "another", in: text) == nil)
        #expect(Netrc.credentials(for: "example.org", user: nil, in: "machine example.org") == nil)
    }

    @Test("tags that are only a date and a length are known for that")
    func tags() {
        #expect(ETag.contentTag(.file, "\"6b017be3-5\"", 0x6b01_7be3, 5) == "m1795259363-5")
        #expect(ETag.contentTag(.file, "16534100-1795259376-5", 1_795_259_376, 5) == "m1795259376-5")
        #expect(ETag.contentTag(.file, "W/\"5-660c7641322c0\"", 1_795_259_376, 5) == "e5-5-660c7641322c0")
        #expect(ETag.contentTag(.file, nil, 7, 5) == "m7-5")
    }
}
