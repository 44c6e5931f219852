import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../electron/core/clock.ts';
import { figure, milliseconds } from '../support/figures.ts';
import { privately, tempFolder } from '../support/gate.ts';
import { TINY_SHAPE } from '../support/gguf.ts';
import { startLandlordBench } from '../support/landlord-runtime.ts';
import { alive } from '../support/processes.ts';
import { RawClient } from '../support/raw-client.ts';
import { startRouter, until } from '../support/router.ts';
import { type ServeProcess, startServeProcess } from '../support/serve-process.ts';

const GB = 1_000_000_000;
const DAY_MS = 86_400_000;
const DESTRUCTIVE = ['evicted', 'killed', 'drained', 'would_evict', 'eviction_failed'];

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-machine-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** The longest that /healthz took in a number of asks. */
async function slowest(served: ServeProcess, asks: number): Promise<number> {
  let slowestMs = 0;
  for (let index = 0; index < asks; index += 1) {
    const beganAtMs = performance.now();
    await (await fetch(`http://127.0.0.1:${served.port}/healthz`)).text();
    slowestMs = Math.max(slowestMs, performance.now() - beganAtMs);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return slowestMs;
}

/** It ends in order and soon, and nothing of it is left but what the kernel itself holds. */
async function endsInOrder(served: ServeProcess): Promise<void> {
  const family = served.family();
  const beganAtMs = performance.now();
  served.child.kill('SIGTERM');
  // Neither a read that hangs nor the rest of a child that could not be started is waited for.
  await until(() => served.child.exitCode !== null, 10_000, 'it to end');
  expect(await served.end()).toBe(0);
  figure('from SIGTERM to its end', milliseconds(performance.now() - beganAtMs));
  await until(() => alive(family).length === 0, 20_000, 'no process to be left');
}

describe('a clock', () => {
  it('that jumps a day forth and back, and a machine that sleeps, evict nothing and stop nothing', async () => {
    await using router = await startRouter({ models: { tiny: { shape: TINY_SHAPE } } });
    // CLOCK_MONOTONIC stands still while the machine sleeps, and the time of boot goes on.
    let wallMs = 0;
    let asleepMs = 0;
    await using bench = await startLandlordBench({
      routerUrl: router.url,
      routerPid: () => router.pid(),
      totalBytes: 24 * GB,
      footprints: { tiny: { bytes: 8 * GB, rampMs: 100 } },
      config: 'floor: 2GB\nttl: { tiny: 1h }\nidle: 10m\nsmall: [tiny]',
      clock: {
        monotonicMs: () => systemClock.monotonicMs() - asleepMs,
        epochMs: () => Date.now() + wallMs,
      },
    });
    await bench.seen();
    await bench.must({ type: 'load', model: 'router/tiny', force: false });
    const settled = async (what: string): Promise<void> => {
      const { revision } = bench.runtime.state();
      await until(() => bench.runtime.state().revision > revision + 2, 30_000, `new readings ${what}`);
      expect(bench.model('router/tiny').status, what).toBe('loaded');
      expect(bench.runtime.state().devices[0]?.health, what).toBe('ok');
    };
    await settled('before');
    // Two hours are two hours, whatever the clock says meanwhile.
    await bench.must({ type: 'sleep', forMs: 7_200_000 });
    const asleepForS = (): number =>
      (Date.parse(bench.runtime.state().asleep?.until ?? '') - (Date.now() + wallMs)) / 1000;
    wallMs = DAY_MS;
    await settled('a day ahead');
    expect(asleepForS()).toBeCloseTo(7_200, -2);
    wallMs = -DAY_MS;
    await settled('a day back');
    expect(asleepForS()).toBeCloseTo(7_200, -2);
    wallMs = 0;
    await settled('right again');
    await bench.must({ type: 'wake' });
    asleepMs = 2 * DAY_MS;
    const resumed = await bench.event('resumed');
    expect(resumed.reason).not.toBe('');
    await settled('after two days of sleep');
    // The end of a turn a day ahead must not look like one of the future, nor a reading like a stale one.
    expect(await router.chat('tiny').done).toBe(200);
    expect(bench.events.filter(({ kind }) => DESTRUCTIVE.includes(kind))).toEqual([]);
    const ids = bench.events.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)].toSorted((one, other) => one - other));
  });
});

describe('a runtime that does not run for five seconds', () => {
  it('blocked or stopped, says nothing false when it goes on, and unloads nothing', async () => {
    await using router = await startRouter({ models: { tiny: { shape: TINY_SHAPE } } });
    await using served = await startServeProcess({
      folder,
      config: `devices:\n  - { kind: system }\nbackends:\n  - { name: router, kind: llama.cpp, url: "${router.url}" }\n`,
    });
    expect((await served.post('/api/models/router%2Ftiny/load')).status).toBe(200);
    const before = (await served.events()).length;
    // From outside it is the same: no timer, no socket and no answer of a child is looked after.
    process.kill(served.pid, 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    process.kill(served.pid, 'SIGCONT');
    const { revision } = await served.state();
    await until(async () => (await served.state()).revision > revision + 2, 30_000, 'new readings');
    const state = await served.state();
    expect(state.models.find(({ id }) => id === 'router/tiny')?.status).toBe('loaded');
    expect(state.backends[0]?.status).toBe('up');
    const kinds = (await served.events()).slice(before).map(({ kind }) => kind);
    for (const kind of [...DESTRUCTIVE, 'backend_down', 'model_crashed', 'device_lost'])
      expect(kinds).not.toContain(kind);
    await endsInOrder(served);
  });
});

describe('somebody else that does not run', () => {
  it('the sampler, then the router, stopped and going on: the one is replaced, the other waited for, nothing is unloaded', async () => {
    await using router = await startRouter({ models: { tiny: { shape: TINY_SHAPE } } });
    await using served = await startServeProcess({
      folder,
      config: `devices:\n  - { kind: system }\nbackends:\n  - { name: router, kind: llama.cpp, url: "${router.url}", lanes: 1 }\n`,
    });
    const aTurn = async (): Promise<string> => {
      const answer = await served.post('/v1/chat/completions', {
        model: 'tiny',
        messages: [{ role: 'user', content: 'abc' }],
        max_tokens: 4,
      });
      return await answer.text();
    };
    expect(await aTurn()).toContain('choices');
    const open = await served.openFiles();
    const children = served.family().filter((pid) => pid !== served.pid);
    for (const pid of children) process.kill(pid, 'SIGSTOP');
    const restarted = async (): Promise<boolean> =>
      (await served.events()).some(({ kind }) => kind === 'sampler_restarted');
    await until(restarted, 60_000, 'the stopped sampler to be replaced');
    expect(await aTurn()).toContain('choices');
    await until(
      async () => (await served.state()).devices[0]?.health === 'ok',
      60_000,
      'readings of the new one',
    );
    expect(alive(children)).toEqual([]);
    process.kill(router.pid(), 'SIGSTOP');
    const waiting = [aTurn(), aTurn(), aTurn()];
    await until(
      async () => (await served.state()).backends[0]?.status !== 'up',
      60_000,
      'the router not to be believed in',
    );
    figure('slowest /healthz while the router is stopped', milliseconds(await slowest(served, 20)));
    process.kill(router.pid(), 'SIGCONT');
    for (const said of await Promise.all(waiting)) expect(said).toContain('choices');
    await until(async () => (await served.state()).backends[0]?.status === 'up', 60_000, 'the router again');
    expect((await served.state()).models.find(({ id }) => id === 'router/tiny')?.status).toBe('loaded');
    expect((await served.state()).lanes.map(({ held, waiting: count }) => [held, count])).toEqual([
      [false, 0],
    ]);
    expect((await served.events()).filter(({ kind }) => DESTRUCTIVE.includes(kind))).toEqual([]);
    await until(async () => (await served.openFiles()) <= open + 12, 30_000, 'no descriptor to be leaked');
    await endsInOrder(served);
  }, 240_000);
});

describe('a router that is killed and comes back', () => {
  it('costs those before its lane time and no turn; who comes meanwhile is told that it is away, and not that its model is unknown', async () => {
    await using router = await startRouter({ models: { tiny: { shape: TINY_SHAPE } } });
    await using served = await startServeProcess({
      folder,
      config: `devices:\n  - { kind: system }\nbackends:\n  - { name: router, kind: llama.cpp, url: "${router.url}", lanes: 1 }\n`,
    });
    const aTurn = async (model: string): Promise<readonly [number, string]> => {
      const answer = await served.post('/v1/chat/completions', {
        model,
        messages: [{ role: 'user', content: 'abc' }],
        max_tokens: 4,
      });
      return [answer.status, await answer.text()];
    };
    expect((await aTurn('tiny'))[0]).toBe(200);
    // It takes the first, and does not come to an answer.
    process.kill(router.pid(), 'SIGSTOP');
    const waiting = [aTurn('tiny'), aTurn('tiny'), aTurn('router/tiny')];
    const inFlight = async (): Promise<boolean> =>
      (await (await served.ask('/metrics')).text()).includes('landlord_requests_in_flight 3');
    await until(inFlight, 30_000, 'all three to be there');
    await router.kill('SIGKILL');
    await until(async () => (await served.state()).backends[0]?.status === 'down', 30_000, 'it to be away');
    for (const model of ['tiny', 'router/tiny']) {
      const [status, said] = await aTurn(model);
      expect([status, said]).toEqual([502, expect.stringContaining('router does not answer now')]);
    }
    expect((await aTurn('no-such-model'))[0]).toBe(404);
    await router.restart();
    const statuses = (await Promise.all(waiting)).map(([status]) => status);
    // Of the first some may have been sent; the others had not begun.
    expect(statuses.slice(1)).toEqual([200, 200]);
    expect([200, 502]).toContain(statuses[0]);
    await endsInOrder(served);
  }, 120_000);
});

describe('a driver that never answers', () => {
  it('an nvidia-smi that does not end, deaf to every signal but SIGKILL, blocks neither the page nor the end', async () => {
    const smi = join(folder, 'nvidia-smi');
    const deaf = 'for one in (1, 2, 15): signal.signal(one, signal.SIG_IGN)';
    writeFileSync(
      smi,
      `#!/usr/bin/env python3\nimport signal, time\n${deaf}\nwhile True: time.sleep(1000)\n`,
    );
    chmodSync(smi, 0o755);
    await using served = await startServeProcess({
      folder,
      config: `devices:\n  - { kind: nvidia, smi: ${JSON.stringify(smi)} }\n  - { kind: system }\nbackends: []\n`,
    });
    figure('slowest /healthz while nvidia-smi hangs', milliseconds(await slowest(served, 40)));
    const { devices } = await served.state();
    expect(devices.every((device) => device.id !== 'nvidia' || device.freeBytes === null)).toBe(true);
    await endsInOrder(served);
  });

  using probe = tempFolder('mounts');
  const canMount = privately(`mount -t tmpfs tmpfs '${probe.path}'`) !== null;
  // A card of our own under /sys needs a mount of our own.
  if (canMount)
    it('a sysfs file whose read never comes back costs the sampler, and neither the page nor the end', async () => {
      const device = join(folder, 'drm', 'card1', 'device');
      mkdirSync(device, { recursive: true });
      for (const [name, text] of Object.entries({
        vendor: '0x1002\n',
        uevent: 'DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n',
        mem_info_vram_total: '25753026560\n',
        mem_info_gtt_used: '0\n',
        gpu_busy_percent: '0\n',
      }))
        writeFileSync(join(device, name), text);
      // The open of a pipe that nobody writes to waits in the kernel, as a wedged driver has it.
      execFileSync('mkfifo', [join(device, 'mem_info_vram_used')]);
      // The card's files are looked for under /sys/class/drm alone: there, for this process.
      const prefix = privately(
        `mount -t tmpfs tmpfs /sys/class && mkdir /sys/class/drm && mount --bind '${join(folder, 'drm')}' /sys/class/drm`,
      );
      if (prefix === null) throw new Error('it could be mounted before');
      await using served = await startServeProcess({
        folder,
        config: 'devices:\n  - { kind: amdgpu }\nbackends: []\n',
        prefix,
      });
      await until(
        async () =>
          (await served.state()).notices.some(({ text }) =>
            /reads the devices did not answer|driver does not answer/.test(text),
          ),
        60_000,
        'the silent sampler to be told',
      );
      const restarted = (await served.events()).find(({ kind }) => kind === 'sampler_restarted');
      expect(restarted?.reason).toContain('did not answer');
      figure('slowest /healthz while sysfs hangs', milliseconds(await slowest(served, 40)));
      const [card] = (await served.state()).devices;
      expect(card === undefined || card.freeBytes === null).toBe(true);
      await endsInOrder(served);
    });
});

describe('no file descriptor left', () => {
  it('is survived: what needs none goes on, what needs one is told, and all is well when there are some again', async () => {
    await using router = await startRouter({ models: { tiny: { shape: TINY_SHAPE } } });
    await using served = await startServeProcess({
      folder,
      config: `devices:\n  - { kind: system }\nbackends:\n  - { name: router, kind: llama.cpp, url: "${router.url}" }\n`,
    });
    const limit = (files: number): void => {
      execFileSync('prlimit', [`--pid=${served.pid}`, `--nofile=${files}:`]);
    };
    const open = await served.openFiles();
    limit(open + 2);
    const clients = Array.from({ length: 40 }, () => new RawClient(served.port));
    await Promise.all(clients.map((client) => client.until(() => false, 300)));
    // A second while readings, polls and log lines find no descriptor.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    for (const client of clients) client[Symbol.dispose]();
    limit(20_000);
    const well = async (): Promise<boolean> => {
      const answer = await served.post('/v1/chat/completions', {
        model: 'tiny',
        messages: [{ role: 'user', content: 'abc' }],
        max_tokens: 4,
      });
      await answer.text();
      return answer.ok && (await served.state()).backends[0]?.status === 'up';
    };
    await until(() => well().catch(() => false), 60_000, 'it to be well again');
    const answer = await served.post('/api/reports', { kind: 'fail_open', reason: 'files again' });
    await answer.text();
    expect((await served.events()).some(({ reason }) => reason === 'files again')).toBe(true);
    await until(async () => (await served.openFiles()) <= open + 12, 30_000, 'no descriptor to be leaked');
    expect((await served.events()).some(({ kind }) => DESTRUCTIVE.includes(kind))).toBe(false);
    await endsInOrder(served);
  });
});
