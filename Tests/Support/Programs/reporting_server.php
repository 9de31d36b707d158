<?php
/*
 * A WebDAV server on sabre/dav that reports what has changed (RFC 6578). Debian's sabre/dav (1.8) is older than
 * sabre's own plugin for that; this is one in its manner, at both levels. It keeps a log of changes in SQLite, written by
 * comparing the folder with what it was, so that it also has what was changed on the disk.
 *
 * Of the environment: SERVED, the folder; STATE, a folder for the log; SABRE, sabre's autoloader; LEVELS, "1" or
 * "1 infinite"; PART, how many members a report has at most; BLIND, to leave collections out of reports.
 */

error_reporting(0);
require getenv('SABRE');

class ChangeLog {
    public $log;

    function __construct($folder, $file) {
        $this->folder = $folder;
        $this->log = new PDO('sqlite:' . $file, null, null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
        $this->log->exec('PRAGMA busy_timeout = 10000');
        $this->log->exec('CREATE TABLE IF NOT EXISTS present (path TEXT PRIMARY KEY, state TEXT, id TEXT)');
        $this->log->exec('CREATE TABLE IF NOT EXISTS change
            (number INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT, parent TEXT, gone INTEGER)');
    }

    /** Notes what has changed on the disk. */
    function bringUpToDate() {
        clearstatcache();
        $this->log->exec('BEGIN IMMEDIATE');
        $before = [];
        foreach ($this->log->query('SELECT path, state FROM present') as $row) $before[$row['path']] = $row['state'];
        $now = [];
        $this->look('', $now);
        $change = $this->log->prepare('INSERT INTO change (path, parent, gone) VALUES (?, ?, ?)');
        $keep = $this->log->prepare('INSERT OR REPLACE INTO present (path, state) VALUES (?, ?)');
        $forget = $this->log->prepare('DELETE FROM present WHERE path = ?');
        foreach ($now as $path => $state) {
            if (($before[$path] ?? null) === $state) continue;
            $keep->execute([$path, $state]);
            $change->execute([$path, self::parent($path), 0]);
        }
        foreach ($before as $path => $state) {
            if (isset($now[$path])) continue;
            $forget->execute([$path]);
            $change->execute([$path, self::parent($path), 1]);
        }
        $this->log->exec('COMMIT');
    }

    static function parent($path) {
        $slash = strrpos($path, '/');
        return $slash === false ? '' : substr($path, 0, $slash);
    }

    private function look($path, &$found) {
        foreach (scandir($this->folder . '/' . $path) ?: [] as $name) {
            if ($name === '.' || $name === '..') continue;
            $own = ltrim($path . '/' . $name, '/');
            $file = $this->folder . '/' . $own;
            $status = lstat($file);
            $isFolder = is_dir($file);
            if ($isFolder && getenv('BLIND')) {
                $this->look($own, $found);
                continue;
            }
            $found[(string)$own] = $isFolder ? 'd' . $status['ino']
                : $status['ino'] . '-' . $status['size'] . '-' . md5_file($file);
            if ($isFolder) $this->look($own, $found);
        }
    }

    /** The members that changed after a number, each with its last state, and the number that the answer is good for. */
    function since($number, $top, $isDeep, $most) {
        $below = $top === '' ? '1' : 'substr(path, 1, ' . (strlen($top) + 1) . ') = ' . $this->log->quote($top . '/');
        $which = $isDeep ? $below : 'parent = ' . $this->log->quote($top);
        $rows = $this->log->query("SELECT path, MAX(number) AS last, gone FROM change
            WHERE number > $number AND $which GROUP BY path ORDER BY last")->fetchAll();
        if ($most && count($rows) > $most) {
            $rows = array_slice($rows, 0, $most);
            return [$rows, end($rows)['last'], true];
        }
        return [$rows, $this->last(), false];
    }

    function last() {
        return (int)$this->log->query('SELECT MAX(number) FROM change')->fetchColumn();
    }

    function isOwn($token) {
        return preg_match('~^urn:log:(\d+)$~', $token, $match) && (int)$match[1] <= $this->last()
            && !file_exists(getenv('STATE') . '/forgotten') ? (int)$match[1] : false;
    }
}

class ReportPlugin extends Sabre\DAV\ServerPlugin {
    function __construct($log) { $this->log = $log; }

    function initialize(Sabre\DAV\Server $server) {
        $this->server = $server;
        $server->subscribeEvent('report', [$this, 'report']);
        $server->subscribeEvent('afterGetProperties', [$this, 'properties']);
    }

    function getSupportedReportSet($uri) { return ['{DAV:}sync-collection']; }

    function properties($uri, &$properties) {
        if (!array_key_exists('{DAV:}sync-token', $properties[404] ?? [])) return;
        $this->log->bringUpToDate();
        unset($properties[404]['{DAV:}sync-token']);
        unlink(getenv('STATE') . '/forgotten');
        $properties[200]['{DAV:}sync-token'] = 'urn:log:' . $this->log->last();
    }

    private function refuse($status, $error) {
        $this->server->httpResponse->sendStatus($status);
        $this->server->httpResponse->setHeader('Content-Type', 'application/xml');
        $this->server->httpResponse->sendBody("<d:error xmlns:d=\"DAV:\"><d:$error/></d:error>");
        return false;
    }

    function report($name, $body, $uri) {
        if ($name !== '{DAV:}sync-collection') return true;
        $level = $body->getElementsByTagNameNS('urn:DAV', 'sync-level')->item(0)->nodeValue;
        $token = $body->getElementsByTagNameNS('urn:DAV', 'sync-token')->item(0)->nodeValue;
        if (!in_array($level, explode(' ', getenv('LEVELS')))) return $this->refuse(403, 'sync-traversal-supported');
        $this->server->tree->getNodeForPath($uri);
        $this->log->bringUpToDate();
        $number = $this->log->isOwn($token);
        if ($number === false) return $this->refuse(403, 'valid-sync-token');
        [$rows, $last, $isPart] = $this->log->since($number, $uri, $level === 'infinite', (int)getenv('PART'));
        $text = '<?xml version="1.0"?><d:multistatus xmlns:d="DAV:">';
        foreach ($rows as $row) {
            $href = '/' . implode('/', array_map('rawurlencode', explode('/', $row['path'])));
            $text .= "<d:response><d:href>$href</d:href>" . ($row['gone'] ? '<d:status>HTTP/1.1 404 Not Found</d:status>'
                : '<d:propstat><d:prop/><d:status>HTTP/1.1 200 OK</d:status></d:propstat>') . '</d:response>';
        }
        $own = '/' . implode('/', array_map('rawurlencode', explode('/', $uri)));
        if ($isPart) $text .= "<d:response><d:href>$own</d:href><d:status>HTTP/1.1 507 Insufficient Storage</d:status>"
            . '<d:error><d:number-of-matches-within-limits/></d:error></d:response>';
        $text .= "<d:sync-token>urn:log:$last</d:sync-token></d:multistatus>";
        if (file_exists(getenv('STATE') . '/cut')) $text = substr($text, 0, (int)(strlen($text) * 0.7));
        $this->server->httpResponse->sendStatus(207);
        $this->server->httpResponse->setHeader('Content-Type', 'application/xml; charset=utf-8');
        $this->server->httpResponse->sendBody($text);
        return false;
    }
}

file_put_contents(getenv('STATE') . '/requests',
    $_SERVER['REQUEST_METHOD'] . ' ' . ($_SERVER['HTTP_DEPTH'] ?? '-') . ' ' . $_SERVER['REQUEST_URI'] . "\n",
    FILE_APPEND);
$server = new Sabre\DAV\Server(new Sabre\DAV\FS\Directory(getenv('SERVED')));
$server->setBaseUri('/');
$server->addPlugin(new ReportPlugin(new ChangeLog(getenv('SERVED'), getenv('STATE') . '/changes')));
$server->exec();
