import FileProvider
import Foundation
import Testing

@testable import RcloneProvider

@Suite struct RcloneQuotaTests {
    @Test(
        "Any numbers that a backend gives for its space make a quota, or none",
        arguments: [
            (#"{"total": 100, "used": 30}"#, 70, 100), (#"{"total": 100, "used": 30, "free": 20}"#, 20, 100),
            (#"{"total": 100, "used": 200}"#, 0, 100), (#"{"total": 100, "free": -1}"#, 0, 100),
            (#"{"total": -9223372036854775808, "used": 1}"#, 0, 0),
            (#"{"total": 9223372036854775807, "used": -9223372036854775808}"#, .max, .max),
            (#"{"total": 100}"#, nil, nil), (#"{"free": 100}"#, nil, nil),
        ] as [(String, Int64?, Int64?)])
    func numbers(text: String, free: Int64?, total: Int64?) throws {
        let quota = try JSONDecoder().decode(RcloneQuota.self, from: Data(text.utf8)).quota
        #expect(quota?.free == free && quota?.total == total)
    }
}
