import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { procfs } from '../../electron/core/process/procfs.ts';
import type { BackendState } from '../../shared/state.ts';
import { gguf, MIDDLE_SHAPE, TINY_SHAPE } from '../support/gguf.ts';
import { landlord } from '../support/landlord.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { freePort, llamaServer } from '../support/llama-server.ts';
import { until } from '../support/router.ts';

/** From a folder of files to an answer: `landlord presets`, a real router that is ours to run, its first use, its end. */
const GB = 1_000_000_000;
let root = '';
let folder = '';
let bench: LandlordBench | null = null;
const proc = procfs();

const own = (): BackendState['own'] => bench?.runtime.state().backends[0]?.own;
const lives = (pid: number): boolean => !['Z', undefined].includes(proc.stat(pid)?.state);

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'landlord-own-servers-'));
  // As people call their folders.
  folder = join(root, 'My "best" models = 100%');
  await mkdir(join(folder, 'deep'), { recursive: true });
  await copyFile(await gguf(TINY_SHAPE), join(folder, 'tiny model-Q4_K_M.gguf'));
  await copyFile(await gguf(MIDDLE_SHAPE), join(folder, 'deep', 'middle.gguf'));
  await writeFile(join(folder, 'broken.gguf'), 'GGUF of a kind');
  await copyFile(await gguf(TINY_SHAPE), join(folder, 'number #1.gguf'));
});

afterAll(async () => {
  await bench?.[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

const presets = (...args: readonly string[]) =>
  landlord(['presets', folder, '--state-dir', join(root, 'none'), '--room', '2GB', ...args]);

describe('landlord presets', () => {
  it('shows, writes and says what it chose and why; what can’t be used is left out with its reason', async () => {
    const dry = await presets('--dry-run');
    expect(dry).toMatchObject({ code: 0 });
    expect(dry.out).toMatch(/^\[tiny model-Q4_K_M\]$/m);
    const ran = await presets();
    expect(ran).toMatchObject({ code: 0 });
    expect(ran.out).toMatch(/models\.ini: 2 models, each alone in 2\.0? GB \(as you said\)/);
    expect(ran.out).toMatch(/middle .* tokens of context, all it was trained for, with full keys and values/);
    expect(ran.out).toMatch(/left out: broken\.gguf: /);
    expect(ran.out).toMatch(/left out: number #1\.gguf: Its path holds ; or #/);
    expect(`${await readFile(join(folder, 'models.ini'), 'utf8')}`.trimEnd()).toBe(dry.out.trimEnd());
    // Its own file it writes anew; another's it leaves.
    expect(await presets('--ctx', '512')).toMatchObject({ code: 0 });
    await writeFile(join(folder, 'mine.ini'), 'version = 1\n');
    const kept = await presets('--output', join(folder, 'mine.ini'));
    expect(kept).toMatchObject({ code: 69, err: expect.stringMatching(/not made by this command/) });
    expect(await readFile(join(folder, 'mine.ini'), 'utf8')).toBe('version = 1\n');
  });

  it('refuses a folder without models, and options it can’t read', async () => {
    expect(await landlord(['presets', join(root, 'nowhere'), '--room', '2GB'])).toMatchObject({
      code: 65,
      err: expect.stringMatching(/is not there/),
    });
    expect(await presets('--room', 'much')).toMatchObject({ code: 64 });
  });
});

describe('a router that is ours, over that file', () => {
  it('starts with its first use, is accepted by a real llama-server, answers, and its log can be read', async () => {
    const binary = await llamaServer();
    const port = await freePort();
    const words = Object.entries(binary.env).map(([name, value]) => `${name}=${value}`);
    const command = ['/usr/bin/env', ...words, binary.command, '--models-preset', join(folder, 'models.ini')];
    const rest = ['--host', '127.0.0.1', '--port', String(port), '--no-ui', '--threads', '1'];
    bench = await startLandlordBench({
      routerUrl: '',
      routerPid: () => own()?.pid ?? null,
      totalBytes: 24 * GB,
      footprints: { middle: { bytes: GB, rampMs: 0 }, 'tiny model-Q4_K_M': { bytes: GB, rampMs: 0 } },
      backend: `  - { name: mine, kind: llama.cpp, url: "http://127.0.0.1:${port}", start: use, command: ${JSON.stringify([...command, ...rest])} }`,
    });
    const { runtime } = bench;
    await until(() => own()?.status === 'idle', 15_000, 'it to wait for its first use');
    expect(runtime.state().backends[0]?.error).toMatch(/started with the first request/);
    const answer = await fetch(`${runtime.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'tiny model-Q4_K_M',
        messages: [{ role: 'user', content: 'hi' }],
        max_tokens: 1,
      }),
    });
    expect({ status: answer.status, text: (await answer.text()).slice(0, 300) }).toMatchObject({
      status: 200,
    });
    expect(own()).toMatchObject({ status: 'running', restarts: 0, note: null });
    expect(
      runtime
        .state()
        .models.map((model) => model.id)
        .sort(),
    ).toEqual(['mine/middle', 'mine/tiny model-Q4_K_M']);
    const child = runtime.state().models.find((model) => model.id === 'mine/tiny model-Q4_K_M');
    // What was chosen is what it runs with.
    expect(child).toMatchObject({ status: 'loaded', contextTokens: 512 });
    const logs = await landlord([
      'logs',
      'mine',
      '--state-dir',
      join(bench.folder, 'state'),
      '--lines',
      '1000',
    ]);
    expect(logs).toMatchObject({ code: 0, out: expect.stringMatching(/starting \/usr\/bin\/env/) });
    expect(logs.out).toMatch(/router/i);
  });

  it('that is killed is started again', async () => {
    const pid = own()?.pid ?? 0;
    process.kill(pid, 'SIGKILL');
    await until(() => own()?.restarts === 1 && own()?.status === 'running', 30_000, 'a restart');
    await until(() => bench?.runtime.state().backends[0]?.status === 'up', 30_000, 'it to be up');
    expect(own()?.pid).not.toBe(pid);
  });

  it('ends with the runtime, its models’ processes with it', async () => {
    if (bench === null) throw new Error('there is no runtime');
    await bench.must({ type: 'load', model: 'middle', force: false });
    const { model } = bench;
    await until(() => model('mine/middle').pid !== null, 20_000, 'its process');
    const pids = [own()?.pid ?? 0, model('mine/middle').pid ?? 0];
    expect(pids.every((pid) => pid > 0 && lives(pid))).toBe(true);
    await bench.runtime.stop();
    expect(pids.filter(lives)).toEqual([]);
  });

  it('a name of no log says which there are', async () => {
    const state = join(bench?.folder ?? '', 'state');
    const ran = await landlord(['logs', '../token', '--state-dir', state]);
    expect(ran).toMatchObject({ code: 69, err: expect.stringMatching(/those of mine/) });
  });
});
