import { describe, expect, it } from 'vitest';
import { footprintOf, headerOfKeys, MIB } from '../../../support/footprint.ts';
import type { GgufValue } from '../../../support/gguf-writer.ts';
import { LOGGED_ARCHITECTURES, LOGGED_KEYS, PATTERN } from '../../../support/logged-architectures.ts';

const WINDOW = { '.attention.sliding_window': 1024 };
const WAYS: readonly (readonly [string, Readonly<Record<string, GgufValue>>])[] = [
  ['as it is', {}],
  ['with a window', WINDOW],
  ['with a window and a list of layers', { ...WINDOW, '.attention.sliding_window_pattern': [...PATTERN] }],
  ['with a window and a period', { ...WINDOW, '.attention.sliding_window_pattern': 3 }],
];
const LOAD = { contextTokens: 8192, slots: 3, unified: true };
/** As exact as llama.cpp's own lines. */
const NEAR_MIB = 0.006;

describe.each(
  LOGGED_ARCHITECTURES.flatMap((logged) =>
    logged.architectures.split(' ').map((architecture) => ({ architecture, ...logged })),
  ),
)('$architecture', ({ architecture, keys, kvMib, stateMib }) => {
  it('keeps what llama.cpp logged, whatever window its file names', () => {
    for (const [index, [way, more]] of WAYS.entries()) {
      const wanted = kvMib[index];
      if (wanted == null) continue;
      const header = headerOfKeys(architecture, { ...LOGGED_KEYS, ...keys, ...more });
      expect(Math.abs(footprintOf(header, LOAD).kvBytes / MIB - wanted), way).toBeLessThan(NEAR_MIB);
    }
  });

  it('has the states that llama.cpp logged, alone and with drafts ahead', () => {
    const header = headerOfKeys(architecture, { ...LOGGED_KEYS, ...keys });
    for (const [rollbackTokens, wanted] of [
      [0, stateMib[0]],
      [2, stateMib[1]],
    ] as const) {
      const { recurrentBytes } = footprintOf(header, { ...LOAD, rollbackTokens });
      expect(Math.abs(recurrentBytes / MIB - wanted)).toBeLessThan(NEAR_MIB);
    }
  });
});
