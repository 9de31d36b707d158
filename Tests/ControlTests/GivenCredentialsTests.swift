import Control
import ProviderDescriptors
import Testing

/// What becomes of a domain's credentials when a shell gives others.
@Suite struct GivenCredentialsTests {
    private let kept = GivenCredentials(
        secrets: ["user": "user", "password": "word"],
        variables: ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c", "no_proxy": "d"])

    private let exclusive = ProviderDescriptor.s3.identity?.all ?? []

    @Test("ACCESS-6: variables that a shell does not have stay as they were kept") func staysAsItWas() {
        #expect(GivenCredentials(variables: [:]).replacing(kept) == kept)
        var expected = kept
        expected.variables?["SSL_CERT_FILE"] = "/e"
        #expect(GivenCredentials(variables: ["SSL_CERT_FILE": "/e"]).replacing(kept) == expected)
        #expect(GivenCredentials(variables: [:]).replacing(nil) == nil)
    }

    @Test("ACCESS-6: new keys replace all of the old ones, so that no session token is left of those")
    func replacesKeys() {
        let keys = GivenCredentials(variables: ["AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"])
        let result = keys.replacing(kept, exclusive: exclusive)
        #expect(
            result?.variables == ["AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "no_proxy": "d"])
        #expect(result?.secrets["password"] == "word")
        let container = GivenCredentials(variables: ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "u"])
        #expect(
            container.replacing(kept, exclusive: exclusive)?.variables == [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "u", "no_proxy": "d",
            ])
    }

    @Test("ACCESS-6: a password replaces the one that was kept, and an empty variable takes back its value")
    func replacesPassword() {
        let given = GivenCredentials(secrets: ["user": "other", "password": "second"], variables: ["no_proxy": ""])
        let result = given.replacing(kept)
        #expect(result?.secrets["user"] == "other" && result?.secrets["password"] == "second")
        #expect(result?.variables?["no_proxy"] == nil)
        #expect(result?.variables?["AWS_ACCESS_KEY_ID"] == "a")
        let only = GivenCredentials(variables: ["no_proxy": "d"])
        #expect(GivenCredentials(variables: ["no_proxy": ""]).replacing(only) == nil)
    }

    @Test("ACCESS-6: the daemon keeps what says where it is, and no credentials, certificates or proxies")
    func environment() {
        let all = [
            "HOME": "/h", "PATH": "/p", "YONDER_SOCKET": "/s", "LC_ALL": "C", "AWS_PROFILE": "x", "https_proxy": "y",
            "SSL_CERT_FILE": "z", "NETRC": "n", "LD_PRELOAD": "l",
        ]
        #expect(
            DaemonEnvironment.of(all) == ["HOME": "/h", "PATH": "/p", "YONDER_SOCKET": "/s", "LC_ALL": "C"])
    }
}
