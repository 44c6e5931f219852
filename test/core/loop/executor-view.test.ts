import { expect, it } from 'vitest';
import type { Operation, UnloadCause } from '../../../electron/core/actuators/operation.ts';
import { emptyMemory } from '../../../electron/core/guards/memory.ts';
import { executorView } from '../../../electron/core/loop/executor-view.ts';
import { Models } from '../../../electron/core/loop/models.ts';
import { Sight } from '../../../electron/core/loop/sight.ts';
import { device, model, NOW, world } from '../guards/worlds.ts';

const CLOCK = { monotonicMs: () => NOW, epochMs: () => NOW };

function isOvertaken(modelId: string, cause: UnloadCause, isSeen = true): boolean {
  const bigs = [model('old', { lastUsedAtMs: NOW - 2 }), model('new', { lastUsedAtMs: NOW - 1 })];
  const loop = {
    models: new Models(),
    sight: new Sight(),
    executor: { operations: (): readonly Operation[] => [] },
    world: isSeen ? world(device(), bigs, { policy: { maxBig: 1 } }) : null,
    memory: emptyMemory(),
  };
  const operation: Operation = {
    modelId,
    cause,
    deviceId: null,
    reason: '',
    numbers: {},
    forModelId: null,
    startedAtMs: NOW,
    freeBeforeBytes: null,
    heldBytes: null,
    phase: 'confirming',
    requestedAtMs: null,
    armed: null,
    signalable: null,
    signalNote: null,
    killedAtMs: null,
    goneAtMs: null,
    lastFreeBytes: null,
    lastSampleAtMs: null,
    steadySamples: 0,
    disturbed: false,
    stuckTold: false,
  };
  return executorView(loop, CLOCK).isOvertaken(operation);
}

it('of two big models where one may stay, the one used last is let be, and what leaves for another cause is not', () => {
  expect(isOvertaken('router/new', 'max_big')).toBe(true);
  expect(isOvertaken('router/old', 'max_big')).toBe(false);
  expect(isOvertaken('router/new', 'floor')).toBe(false);
  expect(isOvertaken('router/new', 'max_big', false)).toBe(false);
});
