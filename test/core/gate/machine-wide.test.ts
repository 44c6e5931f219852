import { chmodSync, existsSync, linkSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createGate, type Gate } from '../../../electron/core/gate/gate.ts';
import { makeMachineWide } from '../../../electron/core/gate/machine-wide.ts';
import { LANE_8080, runToEnd, tempFolder, URL_8080 } from '../../support/gate.ts';

/** A gate that finds the shared root, of whatever user we are then. */
function gateAt(root: string): Gate {
  return createGate({ env: () => ({}), machineWideRoot: root, passwdHome: () => '/nonexistent' });
}

function asUser<T>(uid: number, fn: () => T): T {
  process.seteuid?.(uid);
  try {
    return fn();
  } finally {
    process.seteuid?.(0);
  }
}

describe('one root for all users of a machine', () => {
  it('is made like /tmp, whatever the umask, and again without harm', () => {
    using folder = tempFolder();
    const root = join(folder.path, 'lib', 'gates');
    const mask = process.umask(0o077);
    try {
      expect(makeMachineWide(root)).toMatchObject({ ok: true, value: { created: true } });
    } finally {
      process.umask(mask);
    }
    expect(statSync(root).mode & 0o7777).toBe(0o1777);
    writeFileSync(join(root, `${LANE_8080}.lock`), '', { mode: 0o600 });
    expect(makeMachineWide(root)).toMatchObject({ ok: true, value: { created: false } });
    expect(statSync(join(root, `${LANE_8080}.lock`)).mode & 0o777).toBe(0o666);
  });

  it('gives nobody another file of ours that was put there: no link, no second name, no pipe', () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    expect(makeMachineWide(root).ok).toBe(true);
    const secret = join(folder.path, 'secret');
    writeFileSync(secret, '', { mode: 0o600 });
    symlinkSync(secret, join(root, '127.0.0.1_1.lock'));
    linkSync(secret, join(root, '127.0.0.1_2.lock'));
    runToEnd(['mkfifo', join(root, '127.0.0.1_3.lock')]);
    expect(makeMachineWide(root).ok).toBe(true);
    expect(statSync(secret).mode & 0o777).toBe(0o600);
  });

  it('says that something else is in its place', () => {
    using folder = tempFolder();
    writeFileSync(join(folder.path, 'gates'), '');
    expect(makeMachineWide(join(folder.path, 'gates'))).toMatchObject({
      ok: false,
      error: { code: 'storage_failed' },
    });
  });

  it('is used from the next turn on where it is there', () => {
    using folder = tempFolder();
    const root = join(folder.path, 'gates');
    expect(gateAt(root).root()?.from).toBe('passwd');
    mkdirSync(root);
    expect(gateAt(root).root()).toEqual({ path: root, from: 'machine-wide' });
  });
});

// Only root can be several users.
if (process.geteuid?.() === 0) {
  describe('two users on one root', () => {
    it('exclude one another, and each writes the sidecar over the other’s', () => {
      using folder = tempFolder();
      chmodSync(folder.path, 0o755);
      const root = join(folder.path, 'gates');
      makeMachineWide(root);
      const gate = gateAt(root);
      const reports: unknown[] = [];
      const take = (session: string) =>
        gate.tryTurn(URL_8080, { session, onReport: (report) => reports.push(report) });
      const first = asUser(65534, () => take('nobody'));
      expect(first.kind).toBe('held');
      expect(statSync(join(root, `${LANE_8080}.lock`))).toMatchObject({ uid: 65534 });
      expect(asUser(1000, () => take('user')).kind).toBe('busy');
      expect(take('root').kind).toBe('busy');
      first[Symbol.dispose]();
      const second = asUser(1000, () => take('user'));
      expect(second.kind).toBe('held');
      expect(asUser(65534, () => take('nobody'))).toMatchObject({
        kind: 'busy',
        holder: { session: 'user' },
      });
      second[Symbol.dispose]();
      expect(reports).toEqual([]);
    });

    it('may not make it unless they are root', () => {
      using folder = tempFolder();
      chmodSync(folder.path, 0o755);
      const root = join(folder.path, 'gates');
      expect(asUser(65534, () => makeMachineWide(root))).toMatchObject({
        ok: false,
        error: { code: 'not_permitted' },
      });
      expect(existsSync(root)).toBe(false);
    });
  });
}
