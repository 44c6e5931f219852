import { describe, expect, it } from 'vitest';
import type { Footprint } from '../../../electron/core/ledger/footprint/estimate.ts';
import { contextSizes, correctedBytes } from '../../../electron/core/questions/context-sizes.ts';
import { risksOf } from '../../../electron/core/questions/risks.ts';
import { deviceBook, guardModelOf } from './parts.ts';

const footprint = (contextTokens: number): Footprint => ({
  weightsBytes: 4e9,
  kvBytes: contextTokens * 1e5,
  recurrentBytes: 0,
  computeBytes: 0,
  overheadBytes: 0,
  totalBytes: 4e9 + contextTokens * 1e5,
  layers: 32,
  kvLayers: 32,
  contextTokens,
  notes: [],
});

describe('sizes under other contexts', () => {
  it('go up to what the model was trained for, with the one it is set to among them', async () => {
    const sizes = await contextSizes(async (tokens) =>
      footprint(tokens === 'set' ? 10_000 : tokens === 'trained' ? 32_768 : tokens),
    );
    expect(sizes.map((size) => size.tokens)).toEqual([4096, 8192, 10_000, 16_384, 32_768]);
    expect(sizes.filter((size) => size.present).map((size) => size.tokens)).toEqual([10_000]);
  });

  it('are none where the file can not be read', async () => {
    expect(await contextSizes(async () => null)).toEqual([]);
  });

  it('are moved by what measuring has shown of the present one', async () => {
    const sizes = await contextSizes(async (tokens) =>
      footprint(tokens === 'set' ? 8192 : tokens === 'trained' ? 16_384 : tokens),
    );
    const [smallest] = sizes;
    if (smallest === undefined) throw new Error('there are sizes');
    expect(correctedBytes(smallest, sizes, null)).toBe(smallest.estimatedBytes);
    const set = sizes.find((size) => size.present);
    expect(correctedBytes(smallest, sizes, (set?.estimatedBytes ?? 0) + 5e8)).toBe(
      smallest.estimatedBytes + 5e8,
    );
  });
});

describe('what a load by force may bring', () => {
  it('says how much is missing, and what the driver does then', () => {
    const [first, ...more] = risksOf(deviceBook({ freeBytes: 6e9 }), 9e9, [], 'router/a');
    expect(first).toMatch(/^It needs 3\.0 GB more than is free: .*slow system memory/);
    expect(more.at(-1)).toMatch(/^Nothing here may be unloaded/);
  });

  it('says what is left for the desktop, and who would leave later', () => {
    const idle = guardModelOf({ id: 'router/b' });
    const pinned = guardModelOf({ id: 'router/c', pinned: true });
    const risks = risksOf(deviceBook({ freeBytes: 6e9 }), 3e9, [idle, pinned], 'router/a');
    expect(risks).toEqual([
      '3.0 GB would be left, 1.0 GB less than the desktop should have.',
      'The guards would unload router/b once idle, and router/a itself when it has been idle for long enough.',
    ]);
  });

  it('tells a cap that would be passed, and an unknown size, apart', () => {
    expect(risksOf(deviceBook({ freeBytes: 20e9, bookedBytes: 20e9 }), 9e9, [], 'router/a')).toEqual([
      'Models would have booked 7.4 GB more than the cap allows them.',
    ]);
    expect(risksOf(deviceBook({}), null, [], 'router/a')[0]).toMatch(/not known/);
    expect(risksOf(null, 1e9, [], 'router/a')[0]).toMatch(/is not known/);
  });
});
