import { afterEach, describe, expect, it } from 'vitest';
import type { Units } from '../../electron/core/actuators/units.ts';
import type { Unit } from '../../electron/core/process/control-group.ts';
import { procfs } from '../../electron/core/process/procfs.ts';
import { ok } from '../../shared/errors.ts';
import { TINY_SHAPE } from '../support/gguf.ts';
import { type LandlordBench, startLandlordBench } from '../support/landlord-runtime.ts';
import { startRouter, type TestRouter, until } from '../support/router.ts';

/** Servers that hang, by SIGSTOP: the API first, then a proven kill, then the service, each at a person's word. */
const GB = 1_000_000_000;
const UNIT: Unit = { name: 'llama.service', scope: 'user' };
let router: TestRouter;
let landlord: LandlordBench;
const stopped: number[] = [];
const restarts: string[] = [];
/** Process → its service, as the fake systemd has it. */
let mainPid: number | null = null;

const units: Units = {
  of: async (pid) =>
    pid === mainPid
      ? ok(UNIT)
      : { ok: false, error: { code: 'not_supported', message: 'It is kept by no service.' } },
  async restart(unit) {
    restarts.push(unit.name);
    await router.kill('SIGKILL');
    await router.restart();
    return ok(undefined);
  },
};

async function begin(config = ''): Promise<number> {
  router = await startRouter({
    models: { talk: { shape: TINY_SHAPE, preset: { metrics: true, 'stop-timeout': 2 } } },
  });
  mainPid = router.pid();
  restarts.length = 0;
  landlord = await startLandlordBench({
    routerUrl: router.url,
    routerPid: () => router.pid(),
    totalBytes: 24 * GB,
    footprints: { talk: { bytes: 12 * GB, rampMs: 0 } },
    config,
    units,
  });
  await landlord.seen();
  await landlord.must({ type: 'load', model: 'talk', force: false });
  await until(() => landlord.model('router/talk').pid !== null, 20_000, 'its process to be proven');
  return landlord.model('router/talk').pid ?? 0;
}

function freeze(...pids: readonly number[]): void {
  for (const pid of pids) {
    process.kill(pid, 'SIGSTOP');
    stopped.push(pid);
  }
}

const state = (pid: number): string | undefined => procfs().stat(pid)?.state;
const lives = (pid: number): boolean => !['Z', undefined].includes(state(pid));
const offers = (): readonly string[] => (landlord.runtime.state().offers ?? []).map((one) => one.id);

afterEach(async () => {
  for (const pid of stopped.splice(0)) if (state(pid) === 'T') process.kill(pid, 'SIGCONT');
  await landlord[Symbol.asyncDispose]();
  await router[Symbol.asyncDispose]();
});

describe('a drain', () => {
  it('of a model that hangs ends with the API, where its server still ends it', async () => {
    const child = await begin();
    freeze(child);
    const done = await landlord.runtime.command({ type: 'drain' });
    expect(done).toMatchObject({ ok: true });
    expect(lives(child)).toBe(false);
    expect(offers()).toEqual([]);
  });

  it('of a server that hangs asks before each step: the process, then the service', async () => {
    const child = await begin();
    freeze(router.pid(), child);
    const first = await landlord.runtime.command({ type: 'drain' });
    expect(first).toMatchObject({ ok: false, error: { code: 'model_busy' } });
    // Nothing was ended without a word.
    expect(state(child)).toBe('T');
    expect(offers()).toEqual(['drain-kill']);

    const second = await landlord.runtime.command({ type: 'accept', offer: 'drain-kill' });
    expect(second).toMatchObject({ ok: true, value: { numbers: { killed: 1, stillThere: 0 } } });
    expect(lives(child)).toBe(false);
    const killed = await landlord.event('killed');
    expect(killed.model).toBe('router/talk');
    expect(lives(router.pid())).toBe(true);
    expect(restarts).toEqual([]);
    // Its memory is back; it still answers nothing, and the next step is offered.
    expect(offers()).toEqual(['drain-restart router']);
    expect(await landlord.runtime.command({ type: 'accept', offer: 'drain-kill' })).toMatchObject({
      ok: false,
      error: { code: 'bad_input' },
    });

    const third = await landlord.runtime.command({ type: 'accept', offer: 'drain-restart router' });
    expect(third).toMatchObject({ ok: true });
    expect(restarts).toEqual(['llama.service']);
    expect(offers()).toEqual([]);
    await until(() => landlord.runtime.state().backends[0]?.status === 'up', 20_000, 'it to answer again');
  });

  it('with both steps said beforehand goes all the way, and says what it did', async () => {
    const child = await begin('drain: { kill: always, restart: always }');
    freeze(router.pid(), child);
    const done = await landlord.runtime.command({ type: 'drain' });
    expect(done).toMatchObject({ ok: true, value: { numbers: { killed: 1, restarted: 1 } } });
    expect(lives(child)).toBe(false);
    expect(restarts).toEqual(['llama.service']);
    expect(done.ok && done.value.message).toMatch(/by force.*llama\.service was started anew/);
  });

  it('offers no service where none is proven to keep the server', async () => {
    const child = await begin();
    mainPid = null;
    freeze(router.pid(), child);
    const done = await landlord.runtime.command({ type: 'drain', kill: true });
    expect(done).toMatchObject({ ok: true });
    expect(lives(child)).toBe(false);
    expect(offers()).toEqual([]);
    expect(restarts).toEqual([]);
  });
});
