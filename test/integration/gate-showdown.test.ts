import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runShowdown } from '../../electron/core/gate/showdown.ts';
import {
  LANDLORD,
  LANE_8080,
  NODE,
  nodeHolder,
  RACER,
  runToEnd,
  startOther,
  tempFolder,
  URL_8080,
  withPasswd,
} from '../support/gate.ts';

const BROKEN_ACTOR = fileURLToPath(new URL('../support/broken-actor.ts', import.meta.url));

describe('the showdown', () => {
  it('tells the lock’s true place; three sessions meet there, and the lane is free at once after', async () => {
    using folder = tempFolder('showdown');
    const result = await runShowdown({ gateDir: folder.path, port: 8080 });
    const path = join(folder.path, '127.0.0.1_8080.lock');
    expect(result).toMatchObject({ passed: true, path, inode: statSync(path).ino, rootFrom: 'override' });
    expect(result.steps.map((step) => [step.who, step.expected])).toEqual([
      ['writer', 'held'],
      ['reader', 'busy'],
      ['cron', 'busy'],
      ['flock', 'busy'],
      ['cron, next turn', 'held'],
      ['flock', 'free'],
    ]);
  });

  it('fails when sessions resolve their root from HOME, though each of them works', async () => {
    const before = process.env.VRAM_LANDLORD_GATE_DIR;
    delete process.env.VRAM_LANDLORD_GATE_DIR;
    try {
      const result = await runShowdown({ port: 8080, command: [...NODE, BROKEN_ACTOR] });
      expect(result.passed).toBe(false);
      expect(result.steps.find((step) => step.who === 'reader')).toMatchObject({
        passed: false,
        expected: 'busy',
      });
    } finally {
      if (before !== undefined) process.env.VRAM_LANDLORD_GATE_DIR = before;
      rmSync('/tmp/no-home-at-all', { recursive: true, force: true });
    }
  });

  it('is printed by the doctor, which fails when a check does', () => {
    using folder = tempFolder('showdown');
    const good = runToEnd([LANDLORD, 'doctor'], { VRAM_LANDLORD_GATE_DIR: folder.path });
    expect(good.stdout).toContain(
      `${folder.path}/127.0.0.1_1.lock, inode ${statSync(join(folder.path, '127.0.0.1_1.lock')).ino}`,
    );
    expect(good.status).toBe(0);
    const bad = runToEnd([LANDLORD, 'doctor', '--json'], { VRAM_LANDLORD_GATE_DIR: BROKEN_ACTOR });
    expect(bad.status).toBe(1);
    const { sections } = JSON.parse(bad.stdout);
    expect(sections[0].checks).toContainEqual(
      expect.objectContaining({
        name: 'showdown',
        outcome: 'failed',
        // Why the first one went on without its lane, and what to do.
        detail: expect.arrayContaining([expect.stringContaining('The turn goes on without its lane.')]),
      }),
    );
  });
});

describe('the doctor at a backend’s own lane', () => {
  const doctor = (root: string, backend: string): { name: string; outcome: string; detail: string[] } => {
    const env = { VRAM_LANDLORD_GATE_DIR: root };
    const { stdout } = runToEnd([LANDLORD, 'doctor', '--json', '--backend', backend], env);
    const checks: { name: string; outcome: string; detail: string[] }[] =
      JSON.parse(stdout).sections[0].checks;
    const found = checks.find(({ name }) => name === 'showdown');
    if (found === undefined) throw new Error(stdout);
    return found;
  };

  it('shows that sessions meet there', () => {
    using folder = tempFolder('showdown');
    const { outcome, detail } = doctor(folder.path, URL_8080);
    expect(outcome).toBe('ok');
    expect(detail[0]).toContain(`${folder.path}/${LANE_8080}.lock, inode`);
  });

  it('takes it from no turn, and says so', async () => {
    using folder = tempFolder('showdown');
    await using _holder = await nodeHolder(folder.path, 'writer');
    expect(doctor(folder.path, 'localhost:8080')).toMatchObject({
      outcome: 'skipped',
      detail: [expect.stringContaining('is in use')],
    });
  });

  it.each([
    ['https://api.example.com/v1', 'not on this machine'],
    ['http://127.0.0.1:8081', 'is 2 turns wide'],
  ])('says why it can show nothing at %s', (backend, why) => {
    using folder = tempFolder('showdown');
    writeFileSync(join(folder.path, '127.0.0.1_8081.width'), '2');
    expect(doctor(folder.path, backend)).toMatchObject({
      outcome: 'skipped',
      detail: [expect.stringContaining(why)],
    });
  });
});

describe('the root without any override', () => {
  it('is one for every HOME, XDG folder, profile and working directory of this user', () => {
    using folder = tempFolder('showdown');
    const root = (env: Readonly<Record<string, string>>, cwd: string): string =>
      runToEnd([...NODE, RACER, 'root'], env, cwd).stdout.trim();
    const first = root({}, '/');
    expect(first).toMatch(/^\/.+\/vram-landlord\/gates$/);
    expect(
      root(
        { HOME: folder.path, XDG_STATE_HOME: folder.path, USER: 'nobody', LOGNAME: 'nobody' },
        folder.path,
      ),
    ).toBe(first);
    expect(root({ HOME: '', XDG_RUNTIME_DIR: folder.path }, '/tmp')).toBe(first);
    expect(root({ HOME: folder.path, GATE_BREAK: 'home' }, '/')).not.toBe(first);
  });

  using probe = tempFolder('showdown');
  const prefix = withPasswd(probe.path, join(probe.path, 'home'));
  // Only with another passwd file can the real root be used without touching this user's own.
  if (prefix !== null) {
    it('lies in the passwd home, where sessions of other homes meet', async () => {
      using folder = tempFolder('showdown');
      const home = join(folder.path, 'home');
      const inside = withPasswd(folder.path, home) ?? [];
      const command = [...inside, ...NODE, RACER, 'hold', 'http://localhost:8080'];
      await using a = startOther([...command, 'a'], { env: { HOME: join(folder.path, 'a') }, cwd: '/' });
      expect(await a.line()).toBe('held');
      await using b = startOther([...command, 'b'], {
        env: { HOME: join(folder.path, 'b') },
        cwd: folder.path,
      });
      expect(await b.line()).toBe('busy');
      expect(statSync(join(home, '.local/state/vram-landlord/gates/127.0.0.1_8080.lock')).isFile()).toBe(
        true,
      );
    });
  }
});
