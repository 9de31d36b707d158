extension Array {
    /// The index of a path in the order of the paths' bytes, or where it would be inserted.
    package func position<Path: Sequence<UInt8>>(of path: Path, by key: (Element) -> Path) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if key(self[middle]).lexicographicallyPrecedes(path) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
