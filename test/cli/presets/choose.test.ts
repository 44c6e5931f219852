import { describe, expect, it } from 'vitest';
import { llama, qwen3moe } from '../../../build/models/synthetic-architectures.ts';
import { type Choice, type Chosen, choose, type Wish } from '../../../electron/cli/presets/choose.ts';
import { commandFlags } from '../../../electron/core/ledger/footprint/command-flags.ts';
import { estimate } from '../../../electron/core/ledger/footprint/estimate.ts';
import type { GgufHeader } from '../../../electron/core/ledger/footprint/gguf-header.ts';
import { presetArgs } from '../../../electron/core/ledger/footprint/other-flags.ts';
import { headerOfKeys, headerOfSpec } from '../../support/footprint.ts';

/** An 8-layer model of wide heads whose context costs more than it weighs, trained for 131 072 tokens. */
const DENSE = headerOfSpec(llama(), {
  'llama.context_length': 131_072,
});
const GB = 1_000_000_000;
const WISH: Wish = { budgetBytes: 100 * GB, deviceKind: 'cuda', contextTokens: null, slots: 1 };

const keysOf = (choice: Chosen): Record<string, string> =>
  choice.kind === 'fits' ? Object.fromEntries(choice.keys) : {};

/** What the chosen keys would take, read back as the router will read them. */
function takes(header: GgufHeader, choice: Choice): number {
  const text = choice.keys.map(([key, value]) => `${key} = ${value}`).join('\n');
  return estimate(header, commandFlags(presetArgs(text)), 'cuda').totalBytes;
}

function fits(choice: Chosen): Choice {
  if (choice.kind !== 'fits') throw new Error(choice.why);
  return choice;
}

describe('what fits is chosen, the least harm first', () => {
  const whole = fits(choose(DENSE, {}, WISH)).footprint.totalBytes;

  it('where there is room: the usual context with full keys and values', () => {
    expect(keysOf(choose(DENSE, {}, WISH))).toEqual({ 'ctx-size': '32768', parallel: '1' });
  });

  it('never more context than the model was trained for, and that is said', () => {
    const short = headerOfSpec(llama(), { 'llama.context_length': 8_192 });
    const choice = fits(choose(short, {}, { ...WISH, contextTokens: 100_000 }));
    expect(choice.contextTokens).toBe(8_192);
    expect(choice.why.join(' ')).toMatch(/8192 tokens of context, all it was trained for/);
  });

  it('a little short: less context, as long as it is useful, before smaller keys and values', () => {
    const choice = fits(choose(DENSE, {}, { ...WISH, budgetBytes: whole - 1 }));
    expect(keysOf(choice)['cache-type-k']).toBeUndefined();
    expect(choice.contextTokens).toBeLessThan(32_768);
    expect(choice.contextTokens).toBeGreaterThanOrEqual(16_384);
    expect(choice.why.join(' ')).toMatch(/is the most that fits/);
  });

  it('much short: 8-bit keys and values, with flash attention, which they need', () => {
    const useful = fits(choose(DENSE, {}, { ...WISH, contextTokens: 16_384 })).footprint.totalBytes;
    const choice = fits(choose(DENSE, {}, { ...WISH, budgetBytes: useful - 1 }));
    expect(keysOf(choice)).toMatchObject({
      'cache-type-k': 'q8_0',
      'cache-type-v': 'q8_0',
      'flash-attn': 'on',
    });
  });

  it('shorter than the least context: layers stay in the host’s memory, as few as do', () => {
    const least = fits(choose(DENSE, {}, { ...WISH, contextTokens: 4_096 })).footprint;
    const budgetBytes = least.totalBytes - least.kvBytes - 1_000_000;
    const choice = fits(choose(DENSE, {}, { ...WISH, budgetBytes }));
    const layers = Number(keysOf(choice)['n-gpu-layers']);
    expect(layers).toBeGreaterThan(0);
    expect(layers).toBeLessThan(DENSE.metadata['llama.block_count'] === 4 ? 5 : 100);
    expect(takes(DENSE, choice)).toBeLessThanOrEqual(budgetBytes);
    expect(choice.why.join(' ')).toMatch(/stay in the host's memory, which is slower/);
  });

  it('with experts: those of some layers stay in the host’s memory, before any layer', () => {
    const header = headerOfSpec(qwen3moe(), {});
    const all = fits(choose(header, {}, { ...WISH, contextTokens: 4_096 })).footprint;
    const budgetBytes = all.totalBytes - all.kvBytes - 100_000;
    expect(Object.keys(keysOf(choose(header, {}, { ...WISH, budgetBytes })))).toContain('n-cpu-moe');
  });

  it('not at all: none, with the figures', () => {
    const choice = choose(DENSE, {}, { ...WISH, budgetBytes: 1_000 });
    expect(choice).toMatchObject({
      kind: 'none',
      why: expect.stringMatching(/at the least, and 1 kB is there/),
    });
  });

  it('what is chosen takes, read back as a preset, no more than there is, whatever there is', () => {
    for (let budgetBytes = 2 * whole; budgetBytes > 1_000_000; budgetBytes = Math.floor(budgetBytes * 0.93)) {
      for (const slots of [1, 3]) {
        const choice = choose(DENSE, {}, { ...WISH, budgetBytes, slots });
        if (choice.kind === 'fits') expect(takes(DENSE, choice)).toBeLessThanOrEqual(budgetBytes);
      }
    }
  });

  it('each slot has the context to itself', () => {
    const choice = fits(choose(DENSE, {}, { ...WISH, slots: 2, contextTokens: 8_192 }));
    expect(keysOf(choice)).toMatchObject({ 'ctx-size': '16384', parallel: '2' });
    expect(choice.why.join(' ')).toMatch(/8192 tokens of context for each of 2 slots/);
  });

  it('a model that makes embeddings reads a whole text at once', () => {
    const bert = headerOfKeys('bert', {
      'bert.block_count': 4,
      'bert.context_length': 512,
      'bert.embedding_length': 384,
      'bert.feed_forward_length': 1536,
      'bert.attention.head_count': 12,
    });
    const choice = fits(choose(bert, {}, WISH));
    const keys = keysOf(choice);
    expect(keys.embeddings).toBe('true');
    expect(keys).toMatchObject({ 'ctx-size': '512', 'ubatch-size': '512', 'batch-size': '512' });
  });
});
