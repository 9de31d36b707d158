// swift-tools-version: 6.2
import PackageDescription

// The only table of targets, in the order of the layers: a target may depend on what stands above it.
// Docs/Architecture.md says in a sentence what each is for; scripts/check-layers holds the imports to it.

let argumentParser = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")
let asyncHTTPClient = Target.Dependency.product(name: "AsyncHTTPClient", package: "async-http-client")
let crypto = Target.Dependency.product(name: "Crypto", package: "swift-crypto")
let grdb = Target.Dependency.product(name: "GRDB", package: "GRDB.swift")
let sqlite = Target.Dependency.product(name: "GRDBSQLite", package: "GRDB.swift")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let inMemoryLogging = Target.Dependency.product(name: "InMemoryLogging", package: "swift-log")
let nioEmbedded = Target.Dependency.product(name: "NIOEmbedded", package: "swift-nio")
let coreMetrics = Target.Dependency.product(name: "CoreMetrics", package: "swift-metrics")
let httpTypes = Target.Dependency.product(name: "HTTPTypes", package: "swift-http-types")
let hummingbird = Target.Dependency.product(name: "Hummingbird", package: "hummingbird")
let nioCore = Target.Dependency.product(name: "NIOCore", package: "swift-nio")
let nioHTTP1 = Target.Dependency.product(name: "NIOHTTP1", package: "swift-nio")
let nioPosix = Target.Dependency.product(name: "NIOPosix", package: "swift-nio")
let nioSSL = Target.Dependency.product(name: "NIOSSL", package: "swift-nio-ssl")
let subprocess = Target.Dependency.product(name: "Subprocess", package: "swift-subprocess")
let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")

let toml = Target.Dependency.product(name: "TOMLKit", package: "TOMLKit")

// `scripts/fuzz` builds the program around the parsers, and the parsers with what libFuzzer counts.
let isFuzzing = Context.environment["YONDER_FUZZ"] != nil
let fuzzed: Set = [
    "Control", "Daemon", "FileNames", "Fuzz", "HTTPTransport", "S3Provider", "SFTPProvider", "TarArchive",
    "WebDAVProvider",
]
let parsers: [Target.Dependency] = [
    "Control", "Daemon", "FileNames", "FileProviderPaths", "HTTPTransport", "S3Provider", "SFTPProvider", "TarArchive",
    "WebDAVProvider", nioCore, nioEmbedded,
]

let targets: [Target] = [
    // The kernel.
    .systemLibrary(
        name: "CFUSE3", path: "Modules/CFUSE3", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
    .target(name: "CFUSEShim", dependencies: ["CFUSE3"], path: "Modules/CFUSEShim"),
    .target(name: "CSyscalls", path: "Modules/CSyscalls"),
    // Empty but for builds with the thread sanitizer.
    .target(name: "CThreadSanitizer", path: "Modules/CThreadSanitizer"),
    .target(name: "FileNames"),
    .target(name: "Syscalls", dependencies: ["CSyscalls", "FileNames", subprocess, system]),
    .target(name: "FUSE", dependencies: ["CFUSEShim", "FileNames", "Syscalls", system]),

    // The words.
    .target(name: "FileProvider", dependencies: ["FileNames", system]),
    .target(name: "FileProviderPaths", dependencies: ["FileProvider", system]),
    .target(name: "FileProviderTesting", dependencies: ["FileProvider", system]),

    // The truth, and what it means.
    .target(name: "Replica", dependencies: ["FileNames", "FileProvider", "Syscalls", grdb, sqlite, logging, system]),
    .target(name: "Volume", dependencies: ["FileNames", "FileProvider", "Replica", "Syscalls", logging, system]),
    .target(
        name: "Sync",
        dependencies: ["FileNames", "FileProvider", "Replica", "Syscalls", coreMetrics, crypto, logging, system]),
    .target(
        name: "Mount", dependencies: ["FileNames", "FUSE", "FileProvider", "Replica", "Syscalls", "Volume", system]),

    // The remotes.
    .target(
        name: "ProviderDescriptors", dependencies: ["FileProvider", logging],
        path: "Sources/Providers/ProviderDescriptors"),
    .target(
        name: "DirectoryProvider",
        dependencies: ["FileNames", "FileProvider", "ProviderDescriptors", "Syscalls", logging, system],
        path: "Sources/Providers/DirectoryProvider"),

    // Examples of providers see what a provider in another package sees.
    .target(name: "TarArchive", dependencies: ["FileProvider"], path: "Examples/TarArchive", packageAccess: false),
    .target(
        name: "SingleFile", dependencies: ["FileProvider", "FileProviderPaths"], path: "Examples/SingleFile",
        packageAccess: false),
    .target(
        name: "HTTPTransport",
        dependencies: [
            "FileProvider", asyncHTTPClient, nioCore, nioHTTP1, nioPosix, nioSSL, logging, system,
        ],
        path: "Sources/Providers/HTTPTransport"),
    .target(
        name: "WebDAVProvider",
        dependencies: [
            "FileProvider", "FileProviderPaths", "HTTPTransport", "ProviderDescriptors", crypto, logging, system,
        ],
        path: "Sources/Providers/WebDAVProvider"),
    .target(
        name: "S3Provider",
        dependencies: [
            "FileNames", "FileProvider", "FileProviderPaths", "HTTPTransport", "ProviderDescriptors", "Syscalls",
            crypto,
            logging, system,
        ],
        path: "Sources/Providers/S3Provider"),

    .target(
        name: "SFTPProvider",
        dependencies: [
            "FileNames", "FileProvider", "FileProviderPaths", "ProviderDescriptors", "Syscalls", crypto, system,
        ],
        path: "Sources/Providers/SFTPProvider"),

    .target(
        name: "ProgramProvider",
        dependencies: ["FileProvider", "FileProviderPaths", "ProviderDescriptors", "Syscalls", logging, system],
        path: "Sources/Providers/ProgramProvider"),

    .target(
        name: "RcloneProvider",
        dependencies: [
            "FileProvider", "FileProviderPaths", "HTTPTransport", "ProgramProvider", "ProviderDescriptors", "Syscalls",
            logging, system,
        ],
        path: "Sources/Providers/RcloneProvider"),

    .target(
        name: "ProgramConformance",
        dependencies: [
            "FileProvider", "FileProviderPaths", "FileProviderTesting", "ProgramProvider", "ProviderDescriptors",
            system,
        ],
        path: "Sources/Providers/ProgramConformance"),

    // The programs.
    .target(name: "Keeper", dependencies: ["CSyscalls"]),
    // Without the shared libraries of Swift, which would double its memory. No test target may depend on it: the flag would
    // apply to all tests.
    .executableTarget(
        name: "yonder-keeper", dependencies: ["Keeper"],
        linkerSettings: [.unsafeFlags(["-static-stdlib"])]),
    .target(name: "Control", dependencies: ["FileProvider", "Syscalls", nioCore, nioPosix, logging, system]),
    .target(
        name: "Web",
        dependencies: ["Control", "FileNames", "Syscalls", hummingbird, httpTypes, logging, nioCore, system],
        resources: [.embedInCode("Page")]),
    .target(
        name: "Daemon",
        dependencies: [
            "Control", "DirectoryProvider", "FUSE", "FileNames", "FileProvider", "FileProviderPaths", "HTTPTransport",
            "Mount", "ProgramProvider", "ProviderDescriptors", "RcloneProvider", "Replica", "S3Provider",
            "SFTPProvider", "Sync", "Syscalls",
            "TarArchive",
            "Volume", "Web",
            "WebDAVProvider", coreMetrics, crypto, logging, system, toml,
        ]),
    .executableTarget(
        name: "yonderd",
        dependencies: ["Control", "Daemon", "Syscalls", "Web", argumentParser, coreMetrics, logging, system]),
    .executableTarget(
        name: "yonder",
        dependencies: [
            "Control", "FileNames", "FileProvider", "ProgramConformance", "ProviderDescriptors", "Syscalls", "Web",
            argumentParser,
            logging, system,
        ]),

    // The proofs.
    .target(
        name: "TestSupport", dependencies: ["CThreadSanitizer", "FileProvider", "Syscalls", system],
        path: "Tests/Support",
        exclude: ["Programs"]),
    .testTarget(name: "FUSETests", dependencies: ["FUSE", "TestSupport", system]),
    .testTarget(
        name: "FileProviderTests", dependencies: ["FileNames", "FileProvider", "FileProviderTesting", "TestSupport"]),
    .target(
        name: "ReplicaTestSupport",
        dependencies: ["FileProvider", "Replica", "Syscalls", "TestSupport", logging, system],
        path: "Tests/ReplicaSupport"),
    .testTarget(
        name: "ReplicaTests",
        dependencies: [
            "FileProvider", "Replica", "ReplicaTestSupport", "Syscalls", "TestSupport", grdb, logging, system,
        ],
        exclude: ["Stored"]),
    .testTarget(
        name: "VolumeTests",
        dependencies: [
            "FileProvider", "Replica", "ReplicaTestSupport", "Syscalls", "TestSupport", "Volume", inMemoryLogging,
            logging, system,
        ]),
    .testTarget(name: "MountTests", dependencies: ["FUSE", "Mount", "Replica", "Syscalls", "Volume", system]),
    .testTarget(
        name: "SyncTests",
        dependencies: [
            "Sync", "Replica", "FileProvider", "FileProviderTesting", "Syscalls", "TestSupport", inMemoryLogging,
            logging, system,
        ]),
    .testTarget(
        name: "DirectoryProviderTests",
        dependencies: [
            "DirectoryProvider", "FileNames", "FileProvider", "FileProviderTesting", "Syscalls", "TestSupport", system,
        ]),
    .testTarget(
        name: "TarArchiveTests",
        dependencies: ["FileProvider", "FileProviderTesting", "TarArchive", "TestSupport", system],
        path: "Examples/TarArchiveTests"),
    .testTarget(
        name: "SingleFileTests",
        dependencies: [
            "FileProvider", "FileProviderPaths", "FileProviderTesting", "SingleFile", "TestSupport", system,
        ],
        path: "Examples/SingleFileTests"),
    .testTarget(
        name: "FileProviderPathsTests",
        dependencies: ["FileProvider", "FileProviderPaths", "FileProviderTesting", "TestSupport", system]),
    .testTarget(
        name: "WebDAVProviderTests",
        dependencies: [
            "FileProvider", "FileProviderPaths", "FileProviderTesting", "HTTPTransport", "TestSupport",
            "WebDAVProvider",
            logging, system,
        ],
        exclude: ["Programs"]),
    .testTarget(
        name: "HTTPTransportTests",
        dependencies: [
            "FileProvider", "FileProviderTesting", "HTTPTransport", "TestSupport", logging, nioCore, system,
        ],
        exclude: ["Programs"]),
    .testTarget(
        name: "S3ProviderTests",
        dependencies: [
            "FileProvider", "FileProviderPaths", "FileProviderTesting", "HTTPTransport", "S3Provider", "Syscalls",
            "TestSupport", inMemoryLogging, logging, system,
        ],
        exclude: ["Programs"]),
    .testTarget(
        name: "ProgramProviderTests",
        dependencies: [
            "FileProvider", "FileProviderPaths", "FileProviderTesting", "ProgramConformance", "ProgramProvider",
            "ProviderDescriptors", "Syscalls", "TestSupport", inMemoryLogging, logging, system,
        ],
        exclude: ["Programs"]),
    .testTarget(
        name: "SFTPProviderTests",
        dependencies: [
            "FileProvider", "FileProviderPaths", "FileProviderTesting", "SFTPProvider", "TestSupport", system,
        ]),
    .testTarget(
        name: "RcloneProviderTests",
        dependencies: [
            "FileProvider", "FileProviderPaths", "FileProviderTesting", "HTTPTransport", "ProgramProvider",
            "ProviderDescriptors", "RcloneProvider", "TestSupport", logging, system,
        ]),
    .testTarget(name: "KeeperTests", dependencies: ["CSyscalls", "Keeper"]),
    .testTarget(
        name: "ControlTests",
        dependencies: ["Control", "ProviderDescriptors", "Syscalls", "TestSupport", logging, system]),
    .testTarget(
        name: "EndToEndTests",
        dependencies: [
            "Control", "Daemon", "FUSE", "FileProvider", "FileProviderTesting", "Mount", "ProviderDescriptors",
            "Replica", "SingleFile", "Sync", "Syscalls", "TestSupport", "Web", "yonder", "yonderd", coreMetrics,
            inMemoryLogging, logging, system,
        ],
        path: "Tests/EndToEnd", exclude: ["Programs"]),

    // The parsers of bytes from outside: a short run with all tests, or a program that runs for ever.
    isFuzzing
        ? .executableTarget(
            name: "Fuzz", dependencies: parsers, path: "Fuzz", exclude: ["Seeds", "ParserTests.swift"],
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer", "-use-ld=lld"])])
        : .testTarget(
            name: "FuzzTests", dependencies: parsers, path: "Fuzz", exclude: ["Seeds", "Fuzzer.swift"]),
]

let package = Package(
    name: "yonder",
    products: [
        .library(name: "FileProvider", targets: ["FileProvider", "FileNames"]),
        .library(name: "FileProviderPaths", targets: ["FileProviderPaths"]),
        .library(name: "FileProviderTesting", targets: ["FileProviderTesting"]),
        .executable(name: "yonderd", targets: ["yonderd"]),
        .executable(name: "yonder", targets: ["yonder"]),
        .executable(name: "yonder-keeper", targets: ["yonder-keeper"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.10.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.9.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.100.0"),
        .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.30.0"),
        .package(url: "https://github.com/apple/swift-system", from: "1.6.0"),
        .package(
            url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: ["FullFoundation"]),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.30.0"),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/LebJe/TOMLKit", from: "0.6.0"),
        .package(url: "https://github.com/swiftlang/swift-subprocess", from: "1.0.0", traits: []),
    ],
    targets: targets,
    swiftLanguageModes: [.v6]
)

for target in package.targets
where target.type != .system && !["CFUSEShim", "CSyscalls", "CThreadSanitizer"].contains(target.name) {
    target.swiftSettings =
        (target.swiftSettings ?? []) + [
            .enableUpcomingFeature("ExistentialAny"),
            .enableUpcomingFeature("MemberImportVisibility"),
        ]
}

if isFuzzing {
    for target in package.targets where fuzzed.contains(target.name) {
        target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(["-sanitize=fuzzer", "-parse-as-library"])]
    }
}
