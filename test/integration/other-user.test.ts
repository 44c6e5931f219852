import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gateIn, LANE_8080, pythonHolder, URL_8080 } from '../support/gate.ts';
import { LAUNCHER } from '../support/landlord.ts';
import { type ServeProcess, startServeProcess } from '../support/serve-process.ts';

/** Any user that is not this one; needs no entry in passwd. */
const NOBODY = 65_534;
const AS_NOBODY = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--'];

/** A program of another user: its exit code and what it wrote. */
function asNobody(...command: string[]): { readonly status: number | null; readonly text: string } {
  const [program = '', ...args] = [...AS_NOBODY, ...command];
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: 60_000 });
  return { status, text: stdout + stderr };
}

const isRoot = process.geteuid?.() === 0;
// Only root can become another user here.
if (isRoot)
  describe('another user of this machine', () => {
    let folder = '';
    let served: ServeProcess;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'landlord-other-'));
      // Their own folder is what others may see; ours in it is not.
      chmodSync(folder, 0o755);
      served = await startServeProcess({ folder, config: 'devices:\n  - { kind: system }\nbackends: []\n' });
    });
    afterAll(async () => {
      await served[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    });

    it('reads neither token nor log, nor lists the state folder', () => {
      for (const name of ['token', 'landlord.db', 'landlord.db-wal', 'runtime.json'])
        expect(asNobody('cat', join(served.stateDir, name)), name).toMatchObject({ status: 1 });
      expect(asNobody('ls', served.stateDir).status).not.toBe(0);
      expect(asNobody('cat', `/proc/${served.pid}/environ`).status).toBe(1);
    });

    it('can not, even in a folder that is opened to it by mistake', () => {
      chmodSync(served.stateDir, 0o755);
      try {
        for (const name of ['token', 'landlord.db', 'landlord.db-wal'])
          if (existsSync(join(served.stateDir, name)))
            expect(asNobody('cat', join(served.stateDir, name)).status, name).toBe(1);
        expect(asNobody('nc', '-w', '2', '-U', served.socketPath).status).not.toBe(0);
        expect(statSync(served.socketPath).mode & 0o077).toBe(0);
      } finally {
        chmodSync(served.stateDir, 0o700);
      }
    });

    it('uses nothing of /api without the token, and what is open without one tells nothing of you', () => {
      const ask = (path: string, ...more: string[]): string =>
        asNobody(
          process.execPath,
          '-e',
          'const [u, m] = process.argv.slice(1); fetch(u, { method: m }).then(async (a) => console.log(a.status, await a.text()))',
          `http://127.0.0.1:${served.port}${path}`,
          ...more,
        ).text;
      for (const path of ['/api/state', '/api/events?json=1', '/api/stream', '/api/reservations', '/'])
        expect(ask(path, 'GET'), path).toMatch(/^401 /);
      for (const path of [
        '/api/drain',
        '/api/sleep',
        '/api/models/a%2Fb/unload',
        '/api/open',
        '/api/reports',
        '/api/settings',
      ])
        expect(ask(path, 'POST'), path).toMatch(/^401 /);
      expect(ask('/healthz', 'GET')).toMatch(/^200 /);
      expect(ask('/healthz', 'GET')).not.toContain(folder);
    });

    it('connects to no ledger socket', () => {
      expect(asNobody('nc', '-w', '2', '-U', served.socketPath).status).not.toBe(0);
    });

    it('neither takes, blocks nor sees a lane of a user’s own', () => {
      const { gate } = gateIn(served.gateDir);
      const lock = join(served.gateDir, `${LANE_8080}.lock`);
      gate.tryTurn(URL_8080)[Symbol.dispose]();
      expect(existsSync(lock)).toBe(true);
      for (const command of [
        ['flock', '-n', lock, 'true'],
        ['sh', '-c', `: > '${lock}'`],
        ['rm', '-f', lock],
        ['ls', served.gateDir],
        ['touch', join(served.gateDir, 'x')],
      ])
        expect(asNobody(...command).status, command.join(' ')).not.toBe(0);
      using turn = gate.tryTurn(URL_8080);
      expect(turn.kind).toBe('held');
    });

    it('shares the lanes of a machine-wide root, can hold others up there, and takes nothing away', async () => {
      const root = join(folder, 'shared');
      const { makeMachineWide } = await import('../../electron/core/gate/machine-wide.ts');
      expect(makeMachineWide(root).ok).toBe(true);
      const { gate } = gateIn(root);
      gate.tryTurn(URL_8080)[Symbol.dispose]();
      const lock = join(root, `${LANE_8080}.lock`);
      chmodSync(lock, 0o666);
      expect(asNobody('flock', '-n', lock, 'true').status).toBe(0);
      expect(asNobody('rm', '-f', lock).status).not.toBe(0);
      await using _holder = await pythonHolder(lock);
      expect(asNobody('flock', '-n', '-E', '75', lock, 'true').status).toBe(75);
    });

    it('is told apart by `doctor --security`, which names every way in', () => {
      const doctor = spawnSync(
        LAUNCHER,
        ['doctor', '--security', '--config', served.configFile, '--state-dir', served.stateDir],
        {
          encoding: 'utf8',
          env: { PATH: process.env.PATH ?? '', HOME: folder, VRAM_LANDLORD_GATE_DIR: served.gateDir },
        },
      );
      expect(doctor.stderr).toBe('');
      for (const line of [
        `port ${served.port} at 127.0.0.1`,
        'no key is set',
        `${served.stateDir}/token (mode 0600)`,
        `${served.socketPath} (mode 0600)`,
        `${served.gateDir}: its owner alone`,
      ])
        expect(doctor.stdout).toContain(line);
      expect(doctor.stdout).not.toMatch(/failed {2}(token|state folder|log|ledger|lanes|page)/);
    });
  });
else
  it('another user can not be played by this one: only root can', () => {
    expect(process.geteuid?.()).not.toBe(0);
  });
