import { describe, expect, it } from 'vitest';
import * as cast from '../../../electron/core/demo/cast.ts';
import { parseSettings } from '../../../electron/core/settings/parse-settings.ts';

const GB = 1e9;
const sum = (...bytes: readonly number[]): number => bytes.reduce((total, one) => total + one, 0);
const { NINE, EMBEDDER, BIG, LEAN_BIG, VISION, DESKTOP, CARD_BYTES } = cast;
const desktop = DESKTOP.compositor + DESKTOP.browser + DESKTOP.player;

describe('the cast of the October morning', () => {
  it('fills 33.9 of 34.2 GB, and the music player asks for more than is left', () => {
    const used = sum(NINE.bytes, EMBEDDER.bytes, BIG.bytes, desktop);
    expect(used / GB).toBeCloseTo(33.9, 6);
    expect(used + DESKTOP.playerMore).toBeGreaterThan(CARD_BYTES);
  });

  it('has no room for the 27B beside the vision model, and room over the hard floor without it', () => {
    const later = desktop - DESKTOP.browser + DESKTOP.browserLater + DESKTOP.playerMore;
    const others = sum(NINE.bytes, EMBEDDER.bytes, later);
    expect(others + VISION.bytes + LEAN_BIG.bytes).toBeGreaterThan(CARD_BYTES);
    expect(CARD_BYTES - others - LEAN_BIG.bytes).toBeGreaterThan(2 * GB);
  });

  it('has settings that are read as meant: watching at first, residents pinned, footprints given', () => {
    const text = cast.configText('/tmp/a "b"/card.json', 'http://127.0.0.1:4321');
    const parsed = parseSettings(text, 'config.yaml');
    if (!parsed.ok) throw new Error(parsed.error.message);
    const settings = parsed.value;
    expect(settings).toMatchObject({
      guards: 'observe',
      idleMs: cast.IDLE_MS,
      raceGraceMs: 1_000,
      pinned: [{ exact: 'pipeline-9b' }, { exact: 'bge-m3' }],
      devices: [{ kind: 'simulated', path: '/tmp/a "b"/card.json' }],
    });
    expect(settings.backends?.[0]).toMatchObject({ name: 'router', url: 'http://127.0.0.1:4321' });
    expect(settings.footprints['qwen-27b']).toBe(21.5 * GB);
  });

  it('gives the router one preset a model', () => {
    const presets = cast.presetsText((shape) => `/models/${shape.layers}.gguf`);
    expect(presets.match(/^\[.+\]$/gm)).toEqual(cast.ROLES.map((role) => `[${role.name}]`));
    expect(presets).toContain('model = /models/8.gguf');
  });
});
