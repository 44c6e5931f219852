import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { FileLocker } from '../../../electron/core/gate/locker.ts';
import type { ReportedEvent } from '../../../electron/core/runtime-api.ts';
import { fail, ok } from '../../../shared/errors.ts';
import { gateIn, LANE_8080, pythonHolder, runToEnd, tempFolder, URL_8080 } from '../../support/gate.ts';

/** What the runtime's log would have of it. */
function openings(told: readonly ReportedEvent[]): readonly string[] {
  return told.filter(({ kind }) => kind === 'fail_open').map(({ reason }) => reason);
}

describe('the gate out of order lets every turn through, and tells it once (rule 17)', () => {
  const noLock: FileLocker = {
    tryLock: () => ({ kind: 'failed', errno: 'ENOLCK' }),
    unlock: () => undefined,
    makeInheritable: () => true,
    handOn: () => undefined,
    blockStreams: () => undefined,
    prepareExec: () => undefined,
  };
  type Case = readonly [string, (root: string) => ReturnType<typeof gateIn>];
  const cases: readonly Case[] = [
    [
      'root_not_a_folder',
      (root) => {
        writeFileSync(root, 'a file');
        return gateIn(root);
      },
    ],
    [
      'lock_not_a_file',
      (root) => {
        mkdirSync(join(root, `${LANE_8080}.lock`), { recursive: true });
        return gateIn(root);
      },
    ],
    ['lock_failed', (root) => gateIn(root, { locker: () => ok(noLock) })],
    [
      'no_locker',
      (root) => gateIn(root, { locker: () => fail('not_supported', 'koffi could not be loaded.') }),
    ],
    ['root_on_network', (root) => gateIn(root, { networkFileSystem: () => 'NFS' })],
    [
      'internal',
      (root) =>
        gateIn(root, {
          networkFileSystem: () => {
            throw new Error('a surprise');
          },
        }),
    ],
    [
      'internal',
      (root) =>
        gateIn(root, {
          locker: () => {
            throw new Error('a surprise');
          },
        }),
    ],
  ];

  it.each(cases)('%s', (reason, make) => {
    using folder = tempFolder();
    const { gate, reports, onReport, told } = make(join(folder.path, 'gates'));
    for (let turn = 0; turn < 3; turn += 1) {
      using got = gate.tryTurn(URL_8080, { onReport });
      expect(got).toMatchObject({ kind: 'open', reason });
    }
    expect(reports).toHaveLength(1);
    expect(openings(told)).toEqual(reports.map((report) => report.message));
    expect(reports[0]?.message).toMatch(/\.$/);
  });

  it('no_home: a user the passwd database does not know', () => {
    const { gate, reports, onReport, told } = gateIn('', { passwdHome: () => null, isFolder: () => false });
    for (let turn = 0; turn < 3; turn += 1)
      expect(gate.tryTurn(URL_8080, { onReport })).toMatchObject({ kind: 'open', reason: 'no_home' });
    expect(reports).toHaveLength(1);
    expect(openings(told)).toEqual(reports.map((report) => report.message));
  });

  it('bad_url: a URL that is none', () => {
    const { gate, reports, onReport, told } = gateIn('/nowhere');
    for (let turn = 0; turn < 3; turn += 1)
      expect(gate.tryTurn('8080', { onReport })).toMatchObject({ kind: 'open', reason: 'bad_url' });
    expect(reports).toHaveLength(1);
    expect(openings(told)).toEqual(reports.map((report) => report.message));
  });

  it('root_not_writable: a folder of another user', () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    mkdirSync(root, { mode: 0o555 });
    const { gate, reports, onReport, told } = gateIn(root);
    const isRoot = process.geteuid?.() === 0;
    for (let turn = 0; turn < 3; turn += 1) {
      // Root may write everywhere; nobody may not.
      if (isRoot) process.seteuid?.(65534);
      try {
        expect(gate.tryTurn(URL_8080, { onReport })).toMatchObject({
          kind: 'open',
          reason: 'root_not_writable',
        });
      } finally {
        if (isRoot) process.seteuid?.(0);
      }
    }
    expect(reports).toHaveLength(1);
    expect(openings(told)).toEqual(reports.map((report) => report.message));
  });

  it('a sidecar that can not be written is told, and the lane is held', () => {
    using folder = tempFolder();
    mkdirSync(join(folder.path, `${LANE_8080}.json`, 'x'), { recursive: true });
    const { gate, reports, onReport, told } = gateIn(folder.path);
    for (let turn = 0; turn < 3; turn += 1) {
      using got = gate.tryTurn(URL_8080, { onReport });
      expect(got.kind).toBe('held');
      expect(runToEnd(['flock', '-n', join(folder.path, `${LANE_8080}.lock`), 'true']).status).toBe(1);
    }
    expect(reports.map((report) => report.reason)).toEqual(['sidecar_not_written']);
    expect(openings(told)).toEqual(reports.map((report) => report.message));
  });

  it('a sidecar of garbage is told by who would read it, and replaced by the next turn', async () => {
    using folder = tempFolder();
    const { gate, reports, onReport, told } = gateIn(folder.path);
    await using holder = await pythonHolder(join(folder.path, `${LANE_8080}.lock`));
    writeFileSync(join(folder.path, `${LANE_8080}.json`), '{"schema":');
    for (let turn = 0; turn < 3; turn += 1) {
      expect(gate.tryTurn(URL_8080, { onReport })).toMatchObject({
        kind: 'busy',
        holder: { pid: holder.pid, session: null },
      });
    }
    expect(reports.map((report) => report.reason)).toEqual(['sidecar_garbage']);
    expect(openings(told)).toEqual(reports.map((report) => report.message));
    await holder.end();
    using turn = gate.tryTurn(URL_8080, { onReport, session: 'next' });
    expect(turn.kind).toBe('held');
    expect(readFileSync(join(folder.path, `${LANE_8080}.json`), 'utf8')).toContain('"next"');
  });

  it.each([
    '{"schema":"vram-landlord/gate-means/1","lanes":[]}',
    '{"schema":"vram-landlord/gate-means/1","models":{}}',
    'no JSON',
  ])('a meaning of garbage is told, and the port is its own lane: %s', (text) => {
    using folder = tempFolder();
    writeFileSync(join(folder.path, `${LANE_8080}.means`), text);
    const { gate, reports, onReport, told } = gateIn(folder.path);
    using turn = gate.tryTurn(URL_8080, { onReport });
    expect(gate.tryTurn(URL_8080, { onReport, session: 'b' }).kind).toBe('busy');
    expect(turn).toMatchObject({ kind: 'held', locks: [join(folder.path, `${LANE_8080}.lock`)] });
    expect(reports.map((report) => report.reason)).toEqual(['means_garbage']);
    expect(openings(told)).toEqual(reports.map((report) => report.message));
  });

  it('a meaning that names a lane twice takes it once', () => {
    using folder = tempFolder();
    const lanes = ['127.0.0.1_9090', '127.0.0.1_9090'];
    const text = JSON.stringify({ schema: 'vram-landlord/gate-means/1', lanes });
    writeFileSync(join(folder.path, `${LANE_8080}.means`), text);
    using turn = gateIn(folder.path).gate.tryTurn(URL_8080);
    expect(turn).toMatchObject({ kind: 'held', locks: [join(folder.path, '127.0.0.1_9090.lock')] });
  });

  it('a width of garbage is told, and the lane is one turn wide', () => {
    using folder = tempFolder();
    writeFileSync(join(folder.path, `${LANE_8080}.width`), 'wide');
    const { gate, reports, onReport, told } = gateIn(folder.path);
    using turn = gate.tryTurn(URL_8080, { onReport });
    expect(gate.tryTurn(URL_8080, { onReport, session: 'b' }).kind).toBe('busy');
    expect(turn.kind).toBe('held');
    expect(reports.map((report) => report.reason)).toEqual(['width_garbage']);
    expect(openings(told)).toEqual(reports.map((report) => report.message));
  });
});
