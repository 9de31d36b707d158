import Control
import FileProvider
import Replica
import Syscalls
import SystemPackage

/// What a mount command asks for.
extension Domains {
    struct MountRequest: Sendable {
        var name: String
        var source: String
        var mountpoint: String
        var options: DomainOptions
        /// Whether the directory may have files.
        var hidesFiles = false
    }

    func name(for arguments: MountArguments) throws -> String {
        if let source = arguments.source, let directory = arguments.directory {
            let name = try arguments.name ?? self.name(for: source, on: directory, arguments.link)
            try Self.checkName(name)
            return name
        }
        let place = arguments.directory.map {
            DomainReference(text: arguments.name ?? $0, path: $0, link: arguments.link)
        }
        guard let name = place.flatMap({ self.name(of: $0) }) ?? arguments.name else {
            throw Self.unknown(arguments.name)
        }
        return name
    }

    private static func unknown(_ name: String?) -> ControlError {
        ControlError(
            .failed, "no such domain; 'yonder mount SOURCE DIR' adds one, 'yonder domains' shows all", path: name)
    }

    /// Determines the mount point and the options of a mount command. The caller holds the domain's name.
    func request(for arguments: MountArguments, named name: String) throws -> MountRequest {
        guard let source = arguments.source, let directory = arguments.directory else {
            guard let known = try store.domainOrItsRemains(named: name) else { throw Self.unknown(arguments.name) }
            if let damage = known.damage, known.source.isEmpty {
                throw ControlError(
                    .failed, "its database is damaged: \(damage); \(DomainStore.wayOut(of: name))", path: name)
            }
            guard let mountpoint = mountpoint(of: known) else {
                throw ControlError(.usage, "was never mounted; 'yonder mount SOURCE DIR' says where", path: name)
            }
            return MountRequest(
                name: name, source: known.source, mountpoint: mountpoint,
                options: known.options.merging(arguments), hidesFiles: arguments.hidesFiles ?? false)
        }
        var known = try store.domainOrItsRemains(named: name)
        if let remains = known, remains.damage != nil, remains.source.isEmpty {
            // The command provides the source that is lost.
            try store.restoreRecord(of: name, DomainSidecar(source: source, mountpoint: directory, options: nil))
            known = try store.domain(named: name)
        }
        if let known, !known.source.utf8.elementsEqual(source.utf8) {
            throw ControlError(
                .failed, "is the name of a domain with another source, '\(known.source)'; choose one with --name",
                path: name)
        }
        let place = known.flatMap { present($0, directory, arguments.link) } ?? directory
        return MountRequest(
            name: name, source: source, mountpoint: place,
            options: (known?.options ?? DomainOptions()).merging(arguments), hidesFiles: arguments.hidesFiles ?? false)
    }

    /// The mount point of a domain, if it is the directory that a command names.
    private func present(_ known: DomainStore.Known, _ directory: String, _ link: String?) -> String? {
        let isNamed = Self.places(directory, link).contains { path in
            hosts[known.name]?.isMounted(on: path) ?? (known.mountpoint?.utf8.elementsEqual(path.utf8) == true)
        }
        return isNamed ? mountpoint(of: known) : nil
    }

    static func checkName(_ name: String) throws(ControlError) {
        guard !FileProviderDomain.isValid(identifier: name) else { return }
        throw ControlError(
            .usage,
            "'\(name)' cannot be a domain's name: a name has 1 to 128 bytes, is neither '.' nor '..', and has no '/', ':' "
                + "or control character; choose one with --name")
    }

    /// The default name of a domain: that of the known domain with this source and directory, else one derived from
    /// the directory's name.
    private func name(for source: String, on directory: String, _ link: String?) throws -> String {
        let known = store.all().known.filter { $0.source.utf8.elementsEqual(source.utf8) }
        if let same = known.first(where: { present($0, directory, link) != nil }) { return same.name }
        let last = FilePath(fileNamed: directory).lastComponent?.string ?? "root"
        let base = FileProviderDomain.isValid(identifier: last) ? last : "domain"
        for number in 1... {
            let name = number == 1 ? base : "\(base)-\(number)"
            guard let taken = try store.domainOrItsRemains(named: name) else { return name }
            if taken.source.utf8.elementsEqual(source.utf8), hosts[name] == nil { return name }
        }
        return base
    }
}
