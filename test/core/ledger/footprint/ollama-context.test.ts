import { describe, expect, it } from 'vitest';
import { commandFlags } from '../../../../electron/core/ledger/footprint/command-flags.ts';
import {
  chosenArgs,
  chosenContext,
  placedArgs,
  withinTrained,
} from '../../../../electron/core/ledger/footprint/ollama-context.ts';

const GIB = 1024 ** 3;

describe('the context that Ollama chooses where nobody asks for one', () => {
  it.each([
    [null, 4096],
    [8 * GIB, 4096],
    [16 * GIB, 4096],
    // A card of 24 GB tells a little less.
    [23.5 * GIB, 32_768],
    [32 * GIB, 32_768],
    [47.5 * GIB, 262_144],
    [96 * GIB, 262_144],
  ])('on a device of %s bytes is %s tokens', (totalBytes, tokens) => {
    expect(chosenContext(totalBytes)).toBe(tokens);
  });

  it('is no more than the model was trained for', () => {
    expect([withinTrained(32_768, 8192), withinTrained(4096, 8192), withinTrained(4096, null)]).toEqual([
      8192, 4096, 4096,
    ]);
    const args = ['ollama', ...chosenArgs('0.34.2', 8192), '--parallel', '1'];
    expect(placedArgs(args, 24 * GIB)).toEqual(['ollama', '--ctx-size', '8192', '--parallel', '1']);
  });

  it('was 4096 tokens before 0.15.5, whatever the card', () => {
    for (const version of ['0.5.13', '0.15.4', '0.15.4-rc0'])
      expect(commandFlags(placedArgs(chosenArgs(version, 131_072), 80 * GIB) ?? [])).toMatchObject({
        contextTokens: 4096,
      });
    for (const version of ['0.15.5', '0.15.6-rc1', '0.16.0', '1.0.0', '0.0.0', 'own', null])
      expect(commandFlags(placedArgs(chosenArgs(version, 131_072), 24 * GIB) ?? [])).toMatchObject({
        contextTokens: 32_768,
      });
  });

  it('changes no command line that says a context, nor none at all', () => {
    const args = ['ollama', '--ctx-size', '2048'];
    expect(placedArgs(args, 24 * GIB)).toBe(args);
    expect(placedArgs(null, 24 * GIB)).toBeNull();
  });
});
