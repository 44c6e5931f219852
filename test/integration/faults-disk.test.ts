import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LandlordEvent } from '../../shared/events.ts';
import { privately } from '../support/gate.ts';
import { freePort } from '../support/llama-server.ts';
import { until } from '../support/router.ts';
import { type ServeProcess, startServeProcess } from '../support/serve-process.ts';
import { SocketClient } from '../support/socket-client.ts';

const CONFIG = 'devices:\n  - { kind: system }\nbackends: []\n';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-disk-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function tell(served: ServeProcess, reason: string): Promise<number> {
  const answer = await served.post('/api/reports', { kind: 'fail_open', reason });
  await answer.text();
  return answer.status;
}

async function troubles(served: ServeProcess): Promise<readonly LandlordEvent[]> {
  return (await served.events()).filter((event) => event.kind === 'storage_failed');
}

async function has(served: ServeProcess, reason: string): Promise<boolean> {
  return (await served.events()).some((event) => event.reason === reason);
}

describe('a state folder', () => {
  it('whose database is no database: it is kept aside, a fresh one begun, and both told', async () => {
    const stateDir = join(folder, 'state');
    mkdirSync(stateDir, { mode: 0o700 });
    writeFileSync(join(stateDir, 'landlord.db'), Buffer.alloc(100_000, 0x5a));
    await using served = await startServeProcess({ folder, config: CONFIG });
    const [told] = await troubles(served);
    const aside = readdirSync(stateDir).find((name) => name.startsWith('landlord.db.corrupt-'));
    expect(aside).toBeDefined();
    expect(told?.reason).toContain(aside);
    expect(await tell(served, 'after')).toBe(202);
    expect(await has(served, 'after')).toBe(true);
  });

  it('whose every byte may be garbage: nothing in it keeps the runtime from starting', async () => {
    const stateDir = join(folder, 'state');
    {
      await using served = await startServeProcess({ folder, config: CONFIG });
      await tell(served, 'before');
    }
    for (const name of readdirSync(stateDir, { withFileTypes: true })) {
      // The kernel's lock is on the inode, whatever is in the file.
      if (name.isFile())
        writeFileSync(join(stateDir, name.name), Buffer.from('\0\xff{"\n'.repeat(50), 'latin1'));
    }
    await using served = await startServeProcess({ folder, config: CONFIG });
    expect(await tell(served, 'after')).toBe(202);
    expect(await has(served, 'after')).toBe(true);
  });

  it('beside a config with several faults: each is said on a line of its own', async () => {
    const config = 'floor: much\ncap: 900%\nmaxBig: some\nbackends: []\n';
    await using served = await startServeProcess({ folder, config });
    const told = (await served.state()).notices.map(({ text }) => text);
    expect(told[0]).toEqual(
      expect.stringMatching(/^The config is not used, so the built-in settings are in force .*:$/),
    );
    const faults = told.filter((text) => /yaml:\d/.test(text));
    expect(faults.map((text) => /yaml:(\d)/.exec(text)?.[1])).toEqual(['1', '2', '3']);
    expect(served.err()).not.toContain('\\u{');
    expect(await served.end()).toBe(0);
  });

  it('that six runtimes want at the same moment is one’s, and the others name it', async () => {
    const six = await Promise.all(
      Array.from({ length: 6 }, () => startServeProcess({ folder, config: CONFIG, wait: false })),
    );
    const isOver = ({ child }: ServeProcess): boolean => child.exitCode !== null;
    await until(() => six.filter(isOver).length === 5, 60_000, 'five of them to give up');
    const [winner] = six.filter((one) => !isOver(one));
    if (winner === undefined) throw new Error('one is left');
    await winner.ready();
    for (const loser of six.filter(isOver)) {
      expect(loser.child.exitCode).toBe(69);
      expect(loser.err()).toContain(`pid ${winner.pid}`);
    }
    expect((await winner.events()).filter(({ kind }) => kind === 'started')).toHaveLength(1);
    expect(await troubles(winner)).toEqual([]);
    expect(await winner.end()).toBe(0);
  }, 120_000);

  it('holds nothing that others may read or write, also where the umask forbids nothing', async () => {
    await using served = await startServeProcess({
      folder,
      config: CONFIG,
      prefix: ['sh', '-c', 'umask 000 && exec "$@"', 'sh'],
    });
    await tell(served, 'something');
    expect((await served.post('/api/sleep')).status).toBe(200);
    const found = readdirSync(folder, { recursive: true, withFileTypes: true })
      .map((entry) => join(entry.parentPath, entry.name))
      // What is being written is another file for a moment.
      .filter((path) => path !== served.configFile && !path.endsWith('.tmp'));
    expect(found.length).toBeGreaterThan(10);
    const modeOf = (path: string): number => lstatSync(path).mode & 0o777;
    const isOpen = (path: string): boolean =>
      path.endsWith('.schema.json') ? modeOf(path) !== 0o644 : (modeOf(path) & 0o077) !== 0;
    expect(found.filter(isOpen)).toEqual([]);
  });

  it('whose database another program keeps locked at the start: what is pinned, asleep and learnt comes with it', async () => {
    {
      await using served = await startServeProcess({ folder, config: CONFIG });
      expect((await served.post('/api/sleep')).status).toBe(200);
      expect((await served.post('/api/guards', { mode: 'observe' })).status).toBe(200);
    }
    using other = new DatabaseSync(join(folder, 'state', 'landlord.db'));
    other.exec('BEGIN EXCLUSIVE');
    await using served = await startServeProcess({ folder, config: CONFIG });
    expect((await troubles(served))[0]?.reason).toContain('locked');
    expect((await served.state()).asleep).toBe(null);
    // A new wish must not cost the old ones.
    expect((await served.post('/api/guards', { mode: 'on' })).status).toBe(200);
    other.exec('COMMIT');
    await until(async () => (await served.state()).asleep !== null, 60_000, 'the sleep of before to hold');
    expect((await served.state()).policy.guards).toBe('on');
    await served.end('SIGKILL');
    await using again = await startServeProcess({ folder, config: CONFIG });
    expect((await again.state()).asleep).not.toBe(null);
    expect((await again.state()).policy.guards).toBe('on');
  }, 120_000);

  it('that is deleted while it runs: it is made anew and told, and no second runtime can start beside it', async () => {
    await using served = await startServeProcess({ folder, config: CONFIG });
    const token = await served.token();
    await tell(served, 'before');
    expect((await served.post('/api/sleep')).status).toBe(200);
    rmSync(join(folder, 'state'), { recursive: true });
    await until(() => existsSync(join(folder, 'state', 'landlord.sock')), 60_000, 'it to be there again');
    expect(await served.token()).toBe(token);
    await until(async () => (await troubles(served)).length > 0, 60_000, 'it to be told');
    await until(
      async () => (await tell(served, 'after')) === 202 && (await has(served, 'after')),
      60_000,
      'the log',
    );
    using client = new SocketClient(served.socketPath);
    expect(await client.ask('STATUS')).toMatch(/^OK /);
    const second = await startServeProcess({ folder, port: await freePort(), wait: false });
    expect(await second.end('SIGCONT')).not.toBe(0);
    expect(second.err()).toContain(`pid ${served.pid}`);
    expect(await served.end()).toBe(0);
    await using again = await startServeProcess({ folder, config: CONFIG });
    expect((await again.state()).asleep).not.toBe(null);
    expect(await has(again, 'after')).toBe(true);
  }, 120_000);

  const stateDir = (): string => join(folder, 'state');
  /** A small disk of its own under the state folder, in a mount namespace. */
  const onOwnDisk = (options: string): readonly string[] | null => {
    mkdirSync(stateDir(), { recursive: true });
    return privately(`mount -t tmpfs -o ${options} tmpfs '${stateDir()}'`);
  };
  const probe = `${tmpdir()}/landlord-probe-${process.pid}`;
  mkdirSync(probe, { recursive: true });
  const canMount = privately(`mount -t tmpfs tmpfs '${probe}'`) !== null;
  rmSync(probe, { recursive: true });
  // Full and read-only disks of our own need mounts of our own.
  if (canMount) {
    it('on a full disk: work goes on, it is told once, and what was kept is written when there is room', async () => {
      const prefix = onOwnDisk('size=3m,mode=0700') ?? [];
      await using served = await startServeProcess({ folder, config: CONFIG, prefix });
      const inside = `/proc/${served.pid}/root${stateDir()}`;
      const filler = join(inside, 'filler');
      await tell(served, 'before');
      fill(filler);
      // SQLite writes into room it has already; a row of this size needs more of it.
      for (let index = 0; index < 60; index += 1)
        expect(await tell(served, `${index} ${'x'.repeat(980)}`)).toBe(202);
      await until(async () => (await troubles(served)).length > 0, 60_000, 'the full disk to be told');
      // The state is published a moment after the event.
      const says = async (): Promise<boolean> =>
        (await served.state()).notices.some(({ text }) =>
          text.startsWith('Events are not stored because the disk is full. '),
        );
      await until(says, 20_000, 'the state to say it');
      expect((await served.post('/api/sleep', { for: '1h' })).status).toBe(200);
      expect((await served.state()).asleep).not.toBe(null);
      rmSync(filler);
      expect(await tell(served, 'room again')).toBe(202);
      await until(() => has(served, 'room again'), 60_000, 'the log to be written again');
      const all = await served.events();
      for (let index = 0; index < 60; index += 1)
        expect(
          all.some((event) => event.reason.startsWith(`${index} x`)),
          `report ${index}`,
        ).toBe(true);
      expect((await troubles(served)).length).toBeLessThanOrEqual(2);
    });

    it('beside a config on a full disk: a setting that can not be written is told, and the file stays as it was', async () => {
      const written = '# mine\ncap: 80% # because\n';
      const lines = `printf '%s' '${CONFIG}${written}' > '${folder}/config.yaml'`;
      const prefix =
        privately(
          `mount -t tmpfs -o size=2m,mode=0700 tmpfs '${folder}' && mkdir '${folder}/gates' && ${lines}`,
        ) ?? [];
      await using served = await startServeProcess({ folder, config: CONFIG, prefix });
      const inside = `/proc/${served.pid}/root${folder}`;
      const config = (): string => readFileSync(join(inside, 'config.yaml'), 'utf8');
      const filler = join(inside, 'filler');
      const change = async (yaml: string): Promise<Response> => {
        const view = await (await served.post('/api/settings')).json();
        return served.post('/api/change-setting', { key: 'cap', yaml, fingerprint: view.fingerprint });
      };
      fill(filler);
      const refused = await change('70%');
      expect([refused.ok, await refused.text()]).toEqual([
        false,
        expect.stringContaining("can't be written"),
      ]);
      expect(config()).toBe(`${CONFIG}${written}`);
      rmSync(filler);
      expect((await change('70%')).status).toBe(200);
      expect(config()).toBe(`${CONFIG}# mine\ncap: 70% # because\n`);
      expect(readdirSync(inside).filter((name) => name.endsWith('.tmp'))).toEqual([]);
    });

    it('that is read-only from the start: it says so in a sentence and ends with 69', async () => {
      const prefix = onOwnDisk('ro') ?? [];
      const served = await startServeProcess({ folder, config: CONFIG, prefix, wait: false });
      expect(await served.end('SIGCONT')).toBe(69);
      expect(served.err()).toMatch(/^landlord serve: .*(read-only|EROFS|written)/i);
      expect(served.err().trim().split('\n')).toHaveLength(1);
    });

    it('that becomes read-only: work goes on, and the log is written again once it can be', async () => {
      const prefix = onOwnDisk('mode=0700') ?? [];
      await using served = await startServeProcess({ folder, config: CONFIG, prefix });
      const inItsMounts = (...command: string[]): void => {
        execFileSync('nsenter', ['-m', '-t', String(served.pid), ...command]);
      };
      await tell(served, 'before');
      // The log is open for writing, so a plain remount is refused as busy: a bind mount's flag is not.
      inItsMounts('mount', '--bind', stateDir(), stateDir());
      inItsMounts('mount', '-o', 'remount,ro,bind', stateDir());
      expect(await tell(served, 'while it may not be written')).toBe(202);
      await until(async () => (await served.state()).devices.length > 0, 20_000, 'the first reading');
      const changed = await served.post('/api/sleep');
      expect(changed.status).toBe(200);
      await changed.text();
      inItsMounts('umount', stateDir());
      expect(await tell(served, 'after')).toBe(202);
      await until(() => has(served, 'while it may not be written'), 60_000, 'what was told meanwhile');
      await until(() => has(served, 'after'), 60_000, 'the log to be written again');
    });
  }
});

function fill(path: string): void {
  const block = Buffer.alloc(16_384);
  try {
    for (;;) writeFileSync(path, block, { flag: 'a' });
  } catch {
    // Full to the last page.
  }
  try {
    for (;;) writeFileSync(path, Buffer.alloc(512), { flag: 'a' });
  } catch {
    // And the page itself.
  }
}
