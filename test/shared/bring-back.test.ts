import { describe, expect, it } from 'vitest';
import { bringBackStep, NO_BRING_BACK } from '../../shared/bring-back.ts';
import type { Health, LandlordState } from '../../shared/state.ts';
import { sampleState } from '../support/fake-runtime.ts';

const GB = 1_000_000_000;
const LEFT = ['router/27B'];

interface Moment {
  readonly atS: number;
  /** What a game holds; absent: it is not there. */
  readonly game?: number;
  readonly idleJob?: number;
  readonly restorable?: readonly string[];
  readonly health?: Health;
  readonly asleep?: LandlordState['asleep'];
  readonly guards?: LandlordState['policy']['guards'];
}

function stateAt(moment: Moment): LandlordState {
  const state = sampleState();
  const tenant = (id: string, gigabytes: number): LandlordState['tenants'][number] => ({
    id,
    kind: 'foreign',
    name: id,
    deviceId: 'pci:0000:03:00.0',
    predictedBytes: null,
    measuredBytes: gigabytes * GB,
    pids: [9],
  });
  return {
    ...state,
    devices: state.devices.map((one) => ({ ...one, health: moment.health ?? 'ok' })),
    tenants: [
      ...(moment.game === undefined ? [] : [tenant('game', moment.game)]),
      ...(moment.idleJob === undefined ? [] : [tenant('comfyui', moment.idleJob)]),
    ],
    restorable: moment.restorable ?? [],
    asleep: moment.asleep ?? null,
    policy: { ...state.policy, guards: moment.guards ?? 'on' },
  };
}

/** The seconds at which it would restore. */
function play(moments: readonly Moment[]): readonly number[] {
  let memory = NO_BRING_BACK;
  return moments.flatMap((moment) => {
    const step = bringBackStep(memory, stateAt(moment), moment.atS * 1000);
    memory = step.memory;
    return step.restore ? [moment.atS] : [];
  });
}

const game = (
  from: number,
  to: number,
  restorable: readonly string[] = LEFT,
  gigabytes = 9,
): readonly Moment[] =>
  Array.from({ length: Math.ceil((to - from) / 5) }, (_one, at) => ({
    atS: from + at * 5,
    game: gigabytes,
    restorable,
  }));
const quiet = (from: number, to: number, change: Partial<Moment> = {}): readonly Moment[] =>
  Array.from({ length: Math.ceil((to - from) / 5) }, (_one, at) => ({
    atS: from + at * 5,
    restorable: LEFT,
    ...change,
  }));

describe('bring back: when what needed the room has ended', () => {
  it('comes back after the game that a model left for is gone for a while', () => {
    expect(play([{ atS: 0 }, ...game(10, 60, []), ...game(60, 600), ...quiet(600, 700)])).toEqual([615]);
  });

  it('waits for what room was made for ahead of it', () => {
    expect(play([{ atS: 0 }, ...quiet(10, 300), ...game(300, 900), ...quiet(900, 1000)])).toEqual([915]);
  });

  it('does not come back between two levels', () => {
    expect(
      play([{ atS: 0 }, ...game(10, 60), ...quiet(60, 70), ...game(70, 200), ...quiet(200, 210)]),
    ).toEqual([]);
  });

  it('does not come back where nobody took the room', () => {
    expect(play([{ atS: 0 }, ...quiet(10, 2000)])).toEqual([]);
  });

  it('takes nobody for a taker who was there before', () => {
    const moments = [{ atS: 0, idleJob: 6 }, ...quiet(10, 100, { idleJob: 6 }), ...quiet(100, 300)];
    expect(play(moments)).toEqual([]);
  });

  it('has forgotten a game that comes long after', () => {
    expect(play([{ atS: 0 }, ...quiet(10, 1000), ...game(1000, 1100), ...quiet(1100, 1200)])).toEqual([]);
  });

  it('asks once', () => {
    expect(play([{ atS: 0 }, ...game(10, 60), ...quiet(60, 600)])).toEqual([75]);
  });

  it('does not go by old readings, nor act while asleep, watching or in need', () => {
    for (const change of [
      { health: 'stale' },
      { health: 'threatened' },
      { guards: 'observe' },
      { guards: 'paused' },
      { asleep: { since: '2026-03-04T09:00:00.000Z', until: null } },
    ] as const) {
      expect(play([{ atS: 0 }, ...game(10, 60), ...quiet(60, 200, change)]), JSON.stringify(change)).toEqual(
        [],
      );
    }
  });

  it('leaves what a browser takes alone', () => {
    expect(play([{ atS: 0 }, ...game(10, 60, LEFT, 0.8), ...quiet(60, 200)])).toEqual([]);
  });
});
