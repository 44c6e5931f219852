import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LoadedModel } from '../../electron/core/engine/engine-host.ts';
import { TALKER_SHAPE, type TestEngine, testEngine } from '../support/engine.ts';
import { seeded, TestAgent, type Turn } from '../support/engine-agents.ts';

/** `LANDLORD_SCHEDULES=200` is the long form. */
const SCHEDULES = Number(process.env.LANDLORD_SCHEDULES ?? 40);
/** A child takes about a second to be there again. */
const RESTART_EVERY = 10;
const SCRIPTS = 6;
/** Two models: agents of one may share a context, agents of two never. */
const SHAPES = [TALKER_SHAPE, { ...TALKER_SHAPE, seed: 12 }];

function scriptOf(seed: number): readonly Turn[] {
  const pick = seeded(seed);
  return Array.from({ length: 4 + pick(3) }, (_, at) => ({
    // The first turn has something to say; later ones may just go on.
    text: at > 0 && pick(3) === 0 ? '' : `Turn ${at} of ${seed} ${'say it again '.repeat(pick(9))}`,
    tokens: 3 + pick(14),
  }));
}

describe('three agents that swap', () => {
  let engine: TestEngine;
  let models: LoadedModel[];
  const references: number[][] = [];
  const load = async (): Promise<void> => {
    models = [];
    for (const shape of SHAPES) models.push(await engine.load(shape));
  };
  const modelOf = (script: number): LoadedModel => {
    const model = models[script % models.length];
    if (model === undefined) throw new Error('no model is loaded');
    return model;
  };
  beforeAll(async () => {
    engine = testEngine();
    await load();
    for (let script = 0; script < SCRIPTS; script += 1) {
      const agent = new TestAgent(engine, modelOf(script), `reference-${script}`);
      for (const turn of scriptOf(script)) await agent.take(turn);
      references.push(agent.said);
      const context = agent.context;
      if (context !== null) await engine.host.disposeContext(context.contextId);
    }
  });
  afterAll(() => engine[Symbol.asyncDispose]());

  it('have different things to say, so that a mix-up would show', () => {
    expect(new Set(references.map((tokens) => tokens.join())).size).toBe(SCRIPTS);
    for (const tokens of references) expect(new Set(tokens).size).toBeGreaterThan(tokens.length / 3);
  });

  it(
    `say token for token what they say undisturbed, over ${SCHEDULES} random schedules of swaps, spills and restarts`,
    async () => {
      const seen = { inPlace: 0, anew: 0, disk: 0, restarts: 0 };
      for (let schedule = 0; schedule < SCHEDULES; schedule += 1) {
        const pick = seeded(1000 + schedule);
        const scripts = [pick(SCRIPTS), pick(SCRIPTS), pick(SCRIPTS)];
        const agents = scripts.map((script, at) => new TestAgent(engine, modelOf(script), `agent-${at}`));
        const left = scripts.map((script) => [...scriptOf(script)]);
        const restartAt = schedule % RESTART_EVERY === 0 ? 2 + pick(6) : -1;
        for (let step = 0; left.some((turns) => turns.length > 0); step += 1) {
          if (step === restartAt) {
            for (const agent of agents) await agent.save(pick(2) === 0 ? 'memory' : 'disk');
            const pid = engine.host.facts()?.pid;
            if (pid === undefined) throw new Error('no engine runs');
            if (pick(2) === 0) await engine.host.stop();
            else {
              const ended = engine.ended.length;
              process.kill(pid, 'SIGKILL');
              while (engine.ended.length === ended) await new Promise((resolve) => setTimeout(resolve, 5));
            }
            await load();
            for (const [at, agent] of agents.entries()) agent.restarted(modelOf(scripts[at] ?? 0));
            seen.restarts += 1;
          }
          const waiting = left.flatMap((turns, at) => (turns.length > 0 ? [at] : []));
          const at = waiting[pick(waiting.length)] ?? 0;
          const agent = agents[at];
          const turn = left[at]?.shift();
          if (agent === undefined || turn === undefined) throw new Error('no turn is left');
          const where = pick(2) === 0 ? 'memory' : 'disk';
          if (where === 'disk') seen.disk += 1;
          if (agent.context === null) {
            const other = agents.find((one) => one.context !== null && one.model === agent.model);
            if (other !== undefined && pick(2) === 0) {
              seen.inPlace += 1;
              await agent.bring(await other.leave(where));
            } else {
              seen.anew += 1;
              if (pick(2) === 0) await agents[pick(3)]?.goOut(where);
            }
          }
          await agent.take(turn);
        }
        const said = agents.map((agent) => agent.said);
        expect(said, `schedule ${schedule}`).toEqual(scripts.map((script) => references[script]));
        for (const agent of agents) {
          if (agent.context !== null) await engine.host.disposeContext(agent.context.contextId);
        }
      }
      // Each way of going and coming back was taken.
      expect(seen.restarts).toBe(Math.ceil(SCHEDULES / RESTART_EVERY));
      expect(Math.min(seen.inPlace, seen.anew, seen.disk)).toBeGreaterThan(SCHEDULES / 2);
    },
    SCHEDULES * 15_000,
  );

  it('leave one file an agent behind, and no half-written one', async () => {
    for (const folder of [engine.memoryFolder, engine.diskFolder]) {
      for (const name of await readdir(folder)) expect(name).toMatch(/^agent-[012]$/);
    }
  });
});
