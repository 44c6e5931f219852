import { describe, expect, it } from 'vitest';
import { BASE, gemma3, llama } from '../../../../build/models/synthetic-architectures.ts';
import { qwen35 } from '../../../../build/models/synthetic-state-models.ts';
import { factsOf } from '../../../../electron/core/ledger/footprint/architecture.ts';
import { estimate } from '../../../../electron/core/ledger/footprint/estimate.ts';
import { DEFAULT_FLAGS, type LoadFlags } from '../../../../electron/core/ledger/footprint/flags.ts';
import {
  type ReferenceAnswer,
  referenceQuestion,
  withReference,
} from '../../../../electron/core/ledger/footprint/reference.ts';
import { headerOfSpec, MIB } from '../../../support/footprint.ts';

const WIDE = { ...BASE, layers: 16, width: 2048, heads: 16, kvHeads: 8, headLength: 128, feedForward: 8192 };
const header = headerOfSpec(llama({ ...WIDE, context: 32_768 }));
const flagsWith = (changes: Partial<LoadFlags>): LoadFlags => ({ ...DEFAULT_FLAGS, ...changes });
const questionOf = (spec: Parameters<typeof headerOfSpec>[0], changes: Partial<LoadFlags>) =>
  referenceQuestion(factsOf(headerOfSpec(spec)), flagsWith(changes));

/** What llama.cpp would say if it agreed with us about exactly what it is asked. */
function agreed(changes: Partial<LoadFlags>, model = header, build: number | null = null): ReferenceAnswer {
  const question = referenceQuestion(factsOf(model), flagsWith(changes));
  if (question === null) throw new Error('nothing to ask');
  const [whole, small] = question.ubatches.map((ubatch) =>
    estimate(
      model,
      flagsWith({
        ...changes,
        contextTokens: question.contextTokens * question.sequences,
        slots: question.sequences,
        unified: false,
        batch: ubatch,
        ubatch,
        gpuLayers: null,
        build,
      }),
      'cpu',
    ),
  );
  const outputs = 4 * question.sequences * factsOf(model).vocabulary;
  const context = (one: typeof whole): number =>
    (one?.kvBytes ?? 0) + (one?.recurrentBytes ?? 0) + (one?.computeBytes ?? 0) + outputs;
  return {
    weightsBytes: whole?.weightsBytes ?? 0,
    contextBytes: [context(whole), context(small)],
    engine: 'llama.cpp',
  };
}

describe('what llama.cpp is asked', () => {
  it('is one sequence with the whole context where slots share one cache', () => {
    expect(questionOf(llama(), { contextTokens: 4096 })).toMatchObject({ sequences: 1, contextTokens: 4096 });
  });

  it('is every sequence where a window or a state depends on their number', () => {
    const asked = { contextTokens: 4096 };
    expect(questionOf(gemma3(), asked)).toMatchObject({ sequences: 4, contextTokens: 1024 });
    expect(questionOf(qwen35(), asked)).toMatchObject({ sequences: 4, contextTokens: 1024 });
    expect(questionOf(llama(), { ...asked, slots: 2 })).toMatchObject({ sequences: 2, contextTokens: 2048 });
  });

  it('is nothing where it has no such load', () => {
    expect(questionOf(llama(), { cacheTypeK: 'turbo3' })).toBeNull();
    expect(questionOf(llama(), { latentCache: true })).toBeNull();
    expect(questionOf({ ...llama(), architecture: 'bert' }, {})).toBeNull();
    expect(questionOf(llama(), { contextTokens: 2 ** 40 })).toBeNull();
  });
});

describe('our figure beside llama.cpp’s', () => {
  it.each([
    { contextTokens: 8192 },
    { contextTokens: 8192, slots: 3 },
    { contextTokens: 8192, gpuLayers: 7 },
    { contextTokens: 8192, build: 11_000 },
    { contextTokens: 8192, cacheTypeK: 'q8_0', cacheTypeV: 'q8_0' },
  ])('stays as it is where both agree: %j', (changes) => {
    const ours = estimate(header, flagsWith(changes), 'cuda');
    const checked = withReference(header, flagsWith(changes), ours, agreed(changes));
    expect(checked?.totalBytes).toBeCloseTo(ours.totalBytes, -1);
    expect(checked?.notes.at(-1)).toMatch(/comes to the same/);
  });

  it('gives way in weights and caches, in the share that is on the device', () => {
    const changes = { contextTokens: 8192, gpuLayers: 9 };
    const answer = agreed(changes);
    const { kvBytes } = estimate(header, flagsWith({ contextTokens: 8192 }), 'cuda');
    const more: ReferenceAnswer = {
      ...answer,
      weightsBytes: answer.weightsBytes * 2,
      contextBytes: [answer.contextBytes[0] + kvBytes, answer.contextBytes[1] + kvBytes],
    };
    const ours = estimate(header, flagsWith(changes), 'cuda');
    const checked = withReference(header, flagsWith(changes), ours, more);
    expect((checked?.kvBytes ?? 0) / ours.kvBytes).toBeCloseTo(2, 2);
    expect((checked?.weightsBytes ?? 0) / ours.weightsBytes).toBeCloseTo(2, 2);
    expect(checked?.computeBytes).toBeCloseTo(ours.computeBytes, -6);
    expect(checked?.notes.at(-1)).toMatch(/its figure is used/);
  });

  it('takes its compute buffers, and for newer servers as the most they can be', () => {
    const answer = agreed({ contextTokens: 8192 });
    const more = 100 * MIB;
    const higher: ReferenceAnswer = {
      ...answer,
      contextBytes: [answer.contextBytes[0] + more, answer.contextBytes[1]],
    };
    const computeFor = (given: ReferenceAnswer, build: number | null): number => {
      const flags = flagsWith({ contextTokens: 8192, build });
      const ours = estimate(header, flags, 'cuda');
      return (withReference(header, flags, ours, given)?.computeBytes ?? 0) - ours.computeBytes;
    };
    expect(computeFor(higher, null) / MIB).toBeCloseTo(100, 0);
    expect(computeFor(higher, 11_000)).toBe(0);
    const nothing: ReferenceAnswer = {
      ...answer,
      contextBytes: [answer.contextBytes[1], answer.contextBytes[1]],
    };
    expect(computeFor(nothing, 11_000)).toBeLessThan(-32 * MIB);
  });

  it('is not taken for a load of another kind', () => {
    const flags = flagsWith({ latentCache: true });
    const ours = estimate(header, flags, 'cuda');
    expect(withReference(header, flags, ours, agreed({ contextTokens: 8192 }))).toBeNull();
  });
});

describe('what another build does otherwise', () => {
  it('is no error of ours: llama.cpp 0.4.0 keeps next-token layers with the others', () => {
    const spec = llama({ ...WIDE, context: 32_768 });
    const model = headerOfSpec(
      { ...spec, architecture: 'glm4moe' },
      { '.block_count': 16, '.nextn_predict_layers': 1 },
    );
    const changes = { contextTokens: 8192, slots: 1, build: 11_669 };
    const ours = estimate(model, flagsWith(changes), 'cpu');
    const checked = withReference(model, flagsWith(changes), ours, agreed(changes, model, 9_400));
    expect(checked?.kvBytes).toBe(ours.kvBytes);
    expect(checked?.notes.at(-1)).toContain('the same weights and caches');
  });
});
