import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { procfs } from '../../electron/core/process/procfs.ts';
import { TINY_SHAPE } from '../support/gguf.ts';
import { landlord } from '../support/landlord.ts';
import { startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort } from '../support/llama-server.ts';
import { startRouter, until } from '../support/router.ts';

/** A process as a router's child looks, which stays when its parent ends: one that hangs in its driver does. */
const STAYS = `
  const { createServer } = require('node:http');
  createServer((request, response) => response.end('{}')).listen(Number(process.argv.at(-1)), '127.0.0.1');
`;
/** Starts it and is gone. */
const PARENT = `
  const { spawn } = require('node:child_process');
  const [routerPort, script, port] = process.argv.slice(-3);
  const child = spawn(process.execPath, ['-e', script, '--', '--port', port], {
    argv0: '/usr/bin/llama-server', detached: true, stdio: 'ignore',
    env: { ...process.env, ...(routerPort === '' ? {} : { LLAMA_SERVER_ROUTER_PORT: routerPort }) },
  });
  process.stdout.write(String(child.pid), () => process.exit(0));
`;

/** The pid of such a process that serves, and whose parent is gone. `routerPort` empty: no router's child. */
async function leftBehind(port: number, routerPort: string): Promise<number> {
  const parent = spawn(process.execPath, ['-e', PARENT, '--', routerPort, STAYS, String(port)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const pid = await new Promise<number>((resolve) => {
    parent.stdout.once('data', (text: Buffer) => resolve(Number(String(text))));
  });
  const answers = async (): Promise<boolean> =>
    (await fetch(`http://127.0.0.1:${port}/`).catch(() => null))?.ok === true;
  await until(answers, 30_000, 'it to serve');
  return pid;
}

const livesStill = (pid: number): boolean => !['Z', undefined].includes(procfs().stat(pid)?.state);

it('a model’s process whose router is gone is listed, and ended when a person names it; nothing else is', async () => {
  const pid = await leftBehind(await freePort(), '9');
  const lives = (): boolean => livesStill(pid);
  try {
    const listed = await landlord(['orphans']);
    expect(listed).toMatchObject({ code: 0 });
    expect(listed.out).toMatch(
      new RegExp(`^\\s+${pid} .*the llama\\.cpp router on port 9 that started it is gone$`, 'm'),
    );
    expect(await landlord(['orphans', '--end', String(process.pid)])).toMatchObject({
      code: 69,
      err: expect.stringMatching(/is not proven .* nothing was done/),
    });
    expect(lives()).toBe(true);
    expect(await landlord(['orphans', '--end', String(pid)])).toMatchObject({
      code: 0,
      out: `Process ${pid} is gone.\n`,
    });
    await until(() => !lives(), 10_000, 'it to be gone');
  } finally {
    if (lives()) process.kill(pid, 'SIGKILL');
  }
});

it('one that holds device memory is told and offered, and ended by itself only where `orphans: end` says so', async () => {
  const GB = 1_000_000_000;
  const pid = await leftBehind(await freePort(), '9');
  // Whoever started it is gone as well, but it may be anybody's.
  const stray = await leftBehind(await freePort(), '');
  const router = await startRouter({ models: { talk: { shape: TINY_SHAPE } } });
  const bench = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: { talk: { bytes: 2 * GB, rampMs: 0 } },
    lookEveryMs: 1_000,
    desktop: [
      { name: 'llama-server', bytes: 4 * GB, type: 'C', pid },
      { name: 'another', bytes: 3 * GB, type: 'C', pid: stray },
    ],
  });
  try {
    await bench.seen();
    const told = () =>
      bench.events.find((one) => one.kind === 'orphan_found' && one.numbers.pid === pid) ?? null;
    await until(() => told() !== null, 60_000, 'it to be told');
    expect(told()).toMatchObject({ numbers: { heldBytes: 4 * GB } });
    expect(told()?.reason).toMatch(/serves nobody: the llama\.cpp router on port 9 that started it is gone/);
    const offered = () => (bench.runtime.state().offers ?? []).map((offer) => offer.label);
    await until(() => offered().includes(`End process ${pid}`), 20_000, 'the offer');
    expect(livesStill(pid)).toBe(true);
    const from = bench.events.length;
    writeFileSync(bench.configFile, `${readFileSync(bench.configFile, 'utf8')}\norphans: end\n`);
    const killed = await bench.event('killed', { from, limitMs: 60_000 });
    expect(killed.reason).toMatch(/as `orphans: end` in the settings says\. Process \d+ is gone/);
    expect(killed.numbers).toMatchObject({ pid });
    expect(livesStill(pid)).toBe(false);
    expect(livesStill(stray)).toBe(true);
  } finally {
    await bench[Symbol.asyncDispose]();
    await router[Symbol.asyncDispose]();
    for (const one of [pid, stray]) if (livesStill(one)) process.kill(one, 'SIGKILL');
  }
});
