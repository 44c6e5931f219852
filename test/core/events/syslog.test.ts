import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Syslog } from '../../../electron/core/events/syslog.ts';
import { syslogLine } from '../../../electron/core/events/syslog-line.ts';
import type { EventKind, LandlordEvent } from '../../../shared/events.ts';

let dir = '';
let program = '';
let said: string[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'landlord-syslog-'));
  program = join(dir, 'logger');
  said = [];
  // Writes its arguments down, one a line, and a line of dashes.
  await writeFile(
    program,
    `#!/bin/sh\nfor a in "$@"; do printf '%s\\n' "$a"; done >> ${dir}/out\necho --- >> ${dir}/out\n`,
  );
  await chmod(program, 0o755);
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const event = (kind: EventKind, reason: string): LandlordEvent => ({
  id: 1,
  at: '2026-01-02T03:04:05.000Z',
  kind,
  reason,
  model: 'router/a',
  numbers: { freeBytes: 5, tookMs: null },
});
const syslog = (extra: { program?: string; sockets?: readonly string[]; limitMs?: number } = {}) =>
  new Syslog({ onMissing: (why) => said.push(why), program, sockets: [dir], ...extra });
const output = () => readFile(join(dir, 'out'), 'utf8').catch(() => '');

describe('syslog', () => {
  it('gets one line for each action and none for other events, with no shell in between', async () => {
    const log = syslog();
    log.write(event('loaded', 'not an action'));
    log.write(event('evicted', '-x $(touch pwned) `id`; "two"\nforged line'));
    log.write(event('killed', 'second'));
    await log.flush();
    expect((await output()).split('---\n').filter((part) => part !== '')).toEqual([
      '-t\nvram-landlord\n-p\ndaemon.notice\n--\n' +
        'evicted router/a: -x $(touch pwned) `id`; "two"\\nforged line (freeBytes=5 tookMs=unknown)\n',
      '-t\nvram-landlord\n-p\ndaemon.notice\n--\nkilled router/a: second (freeBytes=5 tookMs=unknown)\n',
    ]);
    expect(said).toEqual([]);
  });

  it.each([
    ['there is no log to write to', { sockets: ['/nonexistent'] }, 'no syslog or journal'],
    ['there is no such program', { program: '/nonexistent/logger' }, 'no /nonexistent/logger program'],
    ['the program fails', { program: 'false' }, 'ended with 1'],
  ])('says once that %s, and goes on', async (_name, extra, words) => {
    const log = syslog(extra);
    for (const reason of ['a', 'b', 'c']) log.write(event('evicted', reason));
    await log.flush();
    expect(said).toHaveLength(1);
    expect(said[0]).toContain(words);
  });

  it('does not wait for ever for a program that hangs', async () => {
    await writeFile(program, '#!/bin/sh\nexec sleep 60\n');
    const log = syslog({ limitMs: 50 });
    log.write(event('evicted', 'a'));
    await log.flush();
    expect(said[0]).toContain('a signal');
  });
});

describe('syslogLine', () => {
  it('writes out whatever could forge or hide a line', () => {
    const line = syslogLine(event('evicted', 'a\r\n\u001b[31mb\u0000\u2028c\u202Ed\\n\te'));
    expect(line).toBe(
      'evicted router/a: a\\u{d}\\n\\u{1b}[31mb\\u{0}\\u{2028}c\\u{202e}d\\\\n\\te (freeBytes=5 tookMs=unknown)',
    );
  });

  it('is at most 1000 bytes, with no half character', () => {
    for (const filler of ['x', 'ü', '界', '🙂']) {
      const line = syslogLine(event('evicted', filler.repeat(2000)));
      expect(Buffer.byteLength(line)).toBeLessThanOrEqual(1000);
      expect(Buffer.byteLength(line)).toBeGreaterThan(990);
      expect(line).not.toContain('\uFFFD');
    }
  });
});
