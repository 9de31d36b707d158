import Control
import FileProvider
import Foundation
import Logging
import ProviderDescriptors
import SystemPackage
import TestSupport
import Testing

@testable import Daemon

/// The descriptors of the kinds of remote, and what is made of them.
@Suite struct ProviderDescriptorTests {
    @Test("each kind of remote has a descriptor and a factory, and each source belongs to one kind") func catalog() {
        #expect(ProviderCatalog.factories.map(\.descriptor) == ProviderDescriptor.all)
        #expect(Set(ProviderDescriptor.all.map(\.name)).count == ProviderDescriptor.all.count)
        let prefixes = ProviderDescriptor.all.flatMap(\.prefixes)
        for prefix in prefixes { #expect(prefixes.filter { prefix.hasPrefix($0) } == [prefix]) }
        #expect(ProviderDescriptor.serving("/folder")?.name == "folder")
        #expect(ProviderDescriptor.serving("webdavs://host/")?.name == "webdav")
        #expect(ProviderDescriptor.serving("Gopher://host/") == nil)
        #expect(ProviderDescriptor.serving("git:/folder")?.name == "program")
        // An option that several kinds have is one flag, and has one kind of value.
        for (name, same) in Dictionary(grouping: ProviderDescriptor.all.flatMap(\.options), by: \.name) {
            #expect(Set(same.map(\.kind)).count == 1, "\(name)")
        }
    }

    @Test("FOLDER-19: a source that names a folder of this machine is known by the folder's path")
    func folders() {
        for source in ["/folder", "rclone::local:/folder"] {
            #expect(ProviderDescriptor.folder(of: source) == "/folder", "\(source)")
        }
        #expect(ProviderDescriptor.folder(of: "rclone:/a:b") == "/a:b")
        for source in ["rclone:drive:/folder", "rclone::local:folder", "sftp://host/folder", "git:/folder", "folder"] {
            #expect(ProviderDescriptor.folder(of: source) == nil, "\(source)")
        }
    }

    @Test("a wrong value, an option of another kind of remote and a secret among the options are mistakes")
    func mistakes() {
        let s3 = ProviderDescriptor.s3
        #expect(s3.mistake(in: ["endpoint": "https://host", "region": "x"]) == nil)
        #expect(s3.mistake(in: ["endpoint": ""]) == nil)
        #expect(s3.mistake(in: ["endpoint": "a b"]) == "--endpoint takes an address, and 'a b' is not")
        #expect(
            s3.mistake(in: ["endpoint": "https://user:secret@host"]) == "--endpoint takes an address without a password"
        )
        #expect(ProviderDescriptor.webDAV.mistake(in: ["region": "x"]) == "--region is for s3://")
        #expect(ProviderDescriptor.webDAV.mistake(in: ["password": "x"]) != nil)
        #expect(ProviderDescriptor.webDAV.mistake(inSecrets: ["password", "user"]) == nil)
        #expect(
            s3.mistake(inSecrets: ["password"])
                == "the source takes no password: --password-stdin is for webdav:// and webdavs://")
        #expect(
            s3.mistake(inSecrets: ["tok"])
                == "--secret tok: the source takes no such secret; 'yonder providers s3' lists its options")
        #expect(
            ProviderDescriptor.folder.mistake(inSecrets: ["region"])
                == "--secret region: the source takes no such secret")
        #expect(
            s3.mistake(in: ["colour": "x"])
                == "'colour' is no option of such a source; 'yonder providers s3' lists them")
    }

    @Test("ACCESS-7: a password in an address is found, also with a slash in it, and a port or a path is none")
    func passwords() {
        for address in [
            "webdavs://user:secret@host/", "https://user:secret@host", "sftp://user:@host/path", "user:secret@host:80",
            "webdav://user:sec/ret@host/", "http://user:sec?ret@host/", "git:https://user:secret@host/",
        ] { #expect(AddressPassword.isIn(address), "\(address)") }
        for address in [
            "webdavs://user@host:8443/", "webdavs://host:8443/a:b@c", "sftp://host/a@b:c", "https://[::1]/a@b",
            "s3://bucket/a:b", "host:80", "/folder/a:b@c", "oci://image:tag@sha256:1234", "git://host:dir@rev",
        ] { #expect(!AddressPassword.isIn(address), "\(address)") }
    }

    @Test("ACCESS-6: keys of the shell come before a profile that it names, and a named profile before all keys")
    func environment() {
        func shell(_ environment: [String: String], given: [String: String] = [:]) -> ShellEnvironment {
            ShellEnvironment(environment, for: .s3, given: given) { "/absolute/" + $0 }
        }
        let keys = ["AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"]
        let named = keys.merging(["AWS_PROFILE": "work", "AWS_REGION": "x", "AWS_DEFAULT_REGION": "y"]) { $1 }
        #expect(shell(named).options == ["region": "x"] && shell(named).variables == keys)
        #expect(shell(named, given: ["profile": "mine", "region": "z"]).options == [:])
        #expect(shell(named, given: ["profile": "mine"]).variables == [:])
        let container = ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "u"]
        #expect(shell(container).variables == container)
        #expect(shell(container.merging(["AWS_PROFILE": "p"]) { $1 }).variables == [:])
        let web = ["AWS_WEB_IDENTITY_TOKEN_FILE": "token", "AWS_ROLE_ARN": "arn"]
        #expect(
            shell(web.merging(container) { $1 }).variables
                == ["AWS_WEB_IDENTITY_TOKEN_FILE": "/absolute/token", "AWS_ROLE_ARN": "arn"])
        let files = ["SSL_CERT_FILE": "c", "AWS_CA_BUNDLE": "", "NETRC": "n", "no_proxy": "h", "HOME": "/h"]
        #expect(
            shell(files).variables == ["SSL_CERT_FILE": "/absolute/c", "AWS_CA_BUNDLE": "", "no_proxy": "h"])
    }

    @Test("options of a remote are stored with the domain until they are replaced or taken back") func options() {
        var arguments = MountArguments(source: "s3://b", directory: "/d", name: nil)
        arguments.remote = ["endpoint": "https://host", "region": "x"]
        let first = DomainOptions().merging(arguments)
        #expect(DomainOptions(json: first.json).remote == arguments.remote)
        arguments.remote = ["region": ""]
        #expect(first.merging(arguments).remote == ["endpoint": "https://host"])
        arguments.remote = ["region": "", "endpoint": ""]
        #expect(first.merging(arguments).remote == nil)
        arguments.remote = nil
        #expect(first.merging(arguments).remote == first.remote)
    }

    @Test("ACCESS-7: the configuration file has options for a kind of remote, and no secrets")
    func configuration() async throws {
        let configuration = try Configuration(text: "[s3]\nregion = \"not a/region\"\n[ignore]\nnames = [\"x\"]\n")
        #expect(configuration.remoteOptions == ["s3": ["region": "not a/region"]])
        #expect(try Configuration(text: "[s3]\nregoin = \"x\"\n[ignore]\nnames = [\"x\"]\n").complaints.count == 1)
        for wrong in ["[s3]\nendpoint = \"a b\"\n", "[webdav]\npassword = \"x\"\n"] {
            #expect(throws: (any Error).self) { try Configuration(text: wrong) }
        }
        let folder = try TemporaryDirectory()
        defer { folder.remove() }
        let catalog = ProviderCatalog(
            credentials: CredentialStore(in: folder.path), defaults: configuration.remoteOptions,
            stateDirectory: folder.path.string, logger: Logger(label: "test"))
        func refusal(_ options: DomainOptions) async -> String? {
            let domain = FileProviderDomain(identifier: "name", source: "s3://bucket")
            return await failure { try await catalog.tryOut(domain, options, given: nil) }?.message
        }
        #expect(await refusal(DomainOptions()) == "'not a/region' cannot be a region")
        var options = DomainOptions()
        options.remote = ["region": "nor/this"]
        #expect(await refusal(options) == "'nor/this' cannot be a region")
        #expect(throws: ControlError.self) {
            var options = DomainOptions()
            options.remote = ["password": "x"]
            try ProviderCatalog.check(options, of: "webdav://host/")
        }
    }
}

extension RealMount {
    /// `yonder providers`, and the options in help and completions. None of them needs a daemon.
    @Suite struct Providers {
        private struct Report: Decodable {
            struct Option: Decodable {
                var name: String
                var flag: String
                var isSecret: Bool
            }
            var name: String
            var options: [Option]
        }

        @Test("'yonder providers' lists the kinds of sources and the options of one, as text and as JSON")
        func lists() async throws {
            try await Installation.run { yonder in
                let all = try await yonder.yonder("providers")
                #expect(all.status == 0)
                for descriptor in ProviderDescriptor.all { #expect(all.output.contains(descriptor.summary)) }
                let reports = try await yonder.json([Report].self, "providers")
                #expect(reports.map(\.name) == ProviderDescriptor.all.map(\.name))
                for named in ["webdav", "webdavs://host/path"] {
                    let one = try await yonder.json(Report.self, "providers", named)
                    #expect(one.name == "webdav")
                    #expect(one.options.map(\.flag) == ["--password-stdin"] && one.options.allSatisfy(\.isSecret))
                }
                #expect(try await yonder.yonder("providers", "s3").output.contains("--region <region>"))
                try await yonder.yonder("providers", "gopher").expectFailure(saying: "'yonder providers' lists all")
                #expect(yonder.daemon == nil)
            }
        }

        @Test("each option is a flag of mount and import, in their help and in completions") func flags() async throws {
            try await Installation.run { yonder in
                let scripts = try await Command.run(Installation.program, "--generate-completion-script", "bash").output
                for command in ["mount", "import"] {
                    let help = try await yonder.yonder(command, "--help").output
                    for option in ProviderDescriptor.all.flatMap(\.options) {
                        #expect(help.contains("--\(option.flag)"), "\(command) \(option.name)")
                        #expect(scripts.contains("--\(option.flag)"))
                    }
                }
                let wrong = try await yonder.yonder("mount", "webdav://host/", yonder.mount.string, "--region", "x")
                #expect(wrong.status == 64 && wrong.errors.contains("--region is for s3://"), "\(wrong.errors)")
            }
        }
    }
}
