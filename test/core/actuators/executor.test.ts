import { describe, expect, it } from 'vitest';
import type { Effects } from '../../../electron/core/actuators/effects.ts';
import { Executor, type UnloadWish } from '../../../electron/core/actuators/executor.ts';
import type { FreeReading, Outcome } from '../../../electron/core/actuators/operation.ts';
import type { ArmedSignal } from '../../../electron/core/actuators/reaper.ts';
import type { BusyAnswer } from '../../../electron/core/backends/backend.ts';
import { fail, ok, type Result } from '../../../shared/errors.ts';
import type { ModelStatus } from '../../../shared/state.ts';

const GB = 1_000_000_000;

/** An executor over a recorded world: nothing sleeps, time moves by hand. */
function bench(
  answers: {
    readonly idle?: BusyAnswer;
    readonly unload?: Result<void>;
    readonly arm?: Result<ArmedSignal>;
    readonly gone?: boolean | null;
    readonly deviceId?: string | null;
  } = {},
) {
  const calls: string[] = [];
  const outcomes: Outcome[] = [];
  const world = {
    nowMs: 1_000,
    status: 'loaded' as ModelStatus,
    free: { freeBytes: 2 * GB, totalBytes: 34 * GB, sampledAtMs: 900 } as FreeReading,
    undisturbed: true,
    isOvertaken: false,
  };
  const effects: Effects = {
    confirmIdle: async () => {
      calls.push('confirmIdle');
      return answers.idle ?? { busy: false };
    },
    unload: async () => {
      calls.push('unload');
      return answers.unload ?? ok(undefined);
    },
    arm: async () => {
      calls.push('arm');
      return answers.arm ?? fail('not_proven', 'Nothing is proven.');
    },
    refresh: () => calls.push('refresh'),
    processGone: async () => answers.gone ?? true,
    sampleSoon: () => {},
    lookAgain: () => {},
  };
  const executor = new Executor({
    effects,
    clock: { monotonicMs: () => world.nowMs, epochMs: () => world.nowMs },
    onOutcome: (outcome) => outcomes.push(outcome),
    wake: () => {},
    view: {
      status: () => world.status,
      heldBytes: () => 6 * GB,
      deviceOf: () => (answers.deviceId === undefined ? 'sim:0' : answers.deviceId),
      free: () => world.free,
      undisturbed: () => world.undisturbed,
      isOvertaken: () => world.isOvertaken,
    },
  });
  return { executor, calls, outcomes, world };
}

function wish(change: Partial<UnloadWish> = {}): UnloadWish {
  return {
    modelId: 'router/vision',
    cause: 'floor',
    requireIdle: true,
    reason: 'Unloading vision.',
    numbers: {},
    forModelId: null,
    ...change,
  };
}

/** Lets every promise of an answer run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('an unload', () => {
  it('asks first whether the model is idle, and does nothing when it is not', async () => {
    const { executor, calls, outcomes } = bench({ idle: { busy: true, detail: 'slot 0 generates' } });
    executor.unload(wish());
    await settle();
    expect(calls).toEqual(['confirmIdle']);
    expect(outcomes).toMatchObject([{ type: 'busy', detail: 'slot 0 generates' }]);
    expect(executor.operation('router/vision')).toBeNull();
  });

  it('takes unknown for busy (rule 12)', async () => {
    const { executor, calls, outcomes } = bench({ idle: { busy: null, why: 'no answer' } });
    executor.unload(wish());
    await settle();
    expect(calls).toEqual(['confirmIdle']);
    expect(outcomes[0]?.type).toBe('busy');
  });

  it('is let be where another is to leave in its place by the time it has answered', async () => {
    const { executor, calls, outcomes, world } = bench();
    executor.unload(wish({ cause: 'max_big' }));
    world.isOvertaken = true;
    await settle();
    expect(calls).toEqual(['confirmIdle']);
    expect(outcomes).toMatchObject([{ type: 'busy', detail: 'another was used less lately' }]);
  });

  it('is one a model: a second wish while one is on its way changes nothing', async () => {
    const { executor, calls } = bench();
    expect(executor.unload(wish())).toBe(true);
    expect(executor.unload(wish())).toBe(false);
    await settle();
    expect(calls).toEqual(['confirmIdle', 'unload']);
  });

  it('is finished as soon as it is gone where its memory is on no device that is read', async () => {
    const { executor, outcomes, world } = bench({ deviceId: null });
    world.free = { freeBytes: null, totalBytes: null, sampledAtMs: null };
    executor.unload(wish());
    await settle();
    world.status = 'unloaded';
    executor.advance();
    await settle();
    executor.advance();
    expect(outcomes).toMatchObject([{ type: 'left', freedBytes: 6 * GB }]);
  });

  it('is finished when the process is gone and free memory is steady, not when the call returned (rule 11)', async () => {
    const { executor, outcomes, world } = bench();
    executor.unload(wish());
    await settle();
    executor.advance();
    expect(outcomes).toEqual([]);
    world.status = 'unloaded';
    world.nowMs = 2_000;
    executor.advance();
    await settle();
    const reading = (freeBytes: number): void => {
      world.nowMs += 500;
      world.free = { freeBytes, totalBytes: 34 * GB, sampledAtMs: world.nowMs };
      executor.advance();
    };
    reading(4 * GB);
    reading(7 * GB);
    expect(outcomes).toEqual([]);
    reading(8 * GB);
    expect(outcomes).toEqual([]);
    reading(8 * GB);
    expect(outcomes).toMatchObject([{ type: 'left', freedBytes: 6 * GB, killed: false, tookMs: 1_000 }]);
  });

  it('does not count a reading from before the process was gone', async () => {
    const { executor, outcomes, world } = bench();
    executor.unload(wish());
    await settle();
    world.status = 'unloaded';
    executor.advance();
    await settle();
    for (let turn = 0; turn < 5; turn += 1) executor.advance();
    expect(outcomes).toEqual([]);
  });

  it('gives up waiting for memory that never rests, and says what it saw', async () => {
    const { executor, outcomes, world } = bench();
    executor.unload(wish());
    await settle();
    world.status = 'unloaded';
    executor.advance();
    await settle();
    world.nowMs += 11_000;
    executor.advance();
    expect(outcomes).toMatchObject([{ type: 'left', freedBytes: 0 }]);
  });

  it("reports the model's own figure where another load moves the total meanwhile", async () => {
    const { executor, outcomes, world } = bench();
    world.undisturbed = false;
    executor.unload(wish());
    await settle();
    world.status = 'unloaded';
    executor.advance();
    await settle();
    executor.advance();
    expect(outcomes).toEqual([]);
    world.nowMs += 100;
    world.free = { ...world.free, sampledAtMs: world.nowMs };
    executor.advance();
    expect(outcomes).toMatchObject([{ type: 'left', freedBytes: 6 * GB }]);
  });

  it('waits on while the server calls it unloaded but the process still lives', async () => {
    const { executor, outcomes, world } = bench({ gone: false });
    executor.unload(wish());
    await settle();
    world.status = 'unloaded';
    executor.advance();
    await settle();
    world.nowMs += 2_000;
    executor.advance();
    expect(outcomes).toEqual([]);
    expect(executor.operation('router/vision')?.phase).toBe('requested');
  });

  it('tells once that it is stuck', async () => {
    const { executor, outcomes, world } = bench();
    executor.unload(wish());
    await settle();
    world.nowMs += 31_000;
    executor.advance();
    executor.advance();
    expect(outcomes.map((one) => one.type)).toEqual(['stuck']);
  });

  it('has failed when the server refuses it', async () => {
    const { executor, outcomes } = bench({ unload: fail('backend_refused', 'No.') });
    executor.unload(wish());
    await settle();
    expect(outcomes).toMatchObject([{ type: 'failed', message: 'No.' }]);
  });
});

describe('the loser of a race', () => {
  const armed = (kill: Result<{ goneAfterMs: number | null }>): ArmedSignal => ({
    kill: async () => kill,
    [Symbol.dispose]: () => {},
  });
  const race = wish({ cause: 'race', requireIdle: false, forModelId: 'router/big' });

  it('is asked at once and its process is proven meanwhile', async () => {
    const { executor, calls } = bench({ arm: ok(armed(ok({ goneAfterMs: 3 }))) });
    executor.unload(race);
    expect(calls).toEqual(['unload', 'arm']);
    await settle();
    expect(executor.operation('router/vision')?.signalable).toBe(true);
  });

  it('is signalled when told, and has left when the kernel says so', async () => {
    const { executor, outcomes, world } = bench({ arm: ok(armed(ok({ goneAfterMs: 3 }))) });
    executor.unload(race);
    await settle();
    expect(executor.kill('router/vision')).toBe(true);
    expect(executor.kill('router/vision')).toBe(false);
    await settle();
    for (const freeBytes of [8 * GB, 8 * GB]) {
      world.nowMs += 100;
      world.free = { freeBytes, totalBytes: 34 * GB, sampledAtMs: world.nowMs };
      executor.advance();
    }
    expect(outcomes).toMatchObject([{ type: 'left', killed: true, freedBytes: 6 * GB }]);
  });

  it('is not signalled where its process is not proven, and that is said', async () => {
    const { executor, outcomes } = bench();
    executor.unload(race);
    await settle();
    expect(executor.kill('router/vision')).toBe(false);
    expect(outcomes).toMatchObject([{ type: 'signal_refused', message: 'Nothing is proven.' }]);
    expect(executor.operation('router/vision')?.signalable).toBe(false);
  });

  it('goes on waiting for the unload where the signal was refused at the last moment', async () => {
    const refused = fail('not_permitted', 'Another user.');
    const { executor, outcomes } = bench({ arm: ok(armed(refused)) });
    executor.unload(race);
    await settle();
    executor.kill('router/vision');
    await settle();
    expect(outcomes).toMatchObject([{ type: 'signal_refused', message: 'Another user.' }]);
    expect(executor.operation('router/vision')?.phase).toBe('requested');
  });

  it('is still signalled where the server itself refuses to unload', async () => {
    const { executor, outcomes } = bench({
      unload: fail('backend_refused', 'No.'),
      arm: ok(armed(ok({ goneAfterMs: 1 }))),
    });
    executor.unload(race);
    await settle();
    expect(outcomes).toEqual([]);
    expect(executor.kill('router/vision')).toBe(true);
  });
});
