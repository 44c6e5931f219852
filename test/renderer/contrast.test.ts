import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const css = readFileSync(new URL('../../renderer/styles.css', import.meta.url), 'utf8');

type Theme = ReadonlyMap<string, string>;

function variables(block: string): Theme {
  return new Map(
    [...block.matchAll(/--([\w-]+):\s*([^;]+);/g)].map((match) => [match[1] ?? '', (match[2] ?? '').trim()]),
  );
}

const darkStart = css.indexOf('@media (prefers-color-scheme: dark)');
const light = variables(css.slice(0, darkStart));
const dark: Theme = new Map([...light, ...variables(css.slice(darkStart, css.indexOf('* {')))]);

type Rgb = readonly [number, number, number];

function rgb(theme: Theme, name: string): Rgb {
  const value = theme.get(name) ?? '';
  const parts = /^#(..)(..)(..)$/.exec(value);
  if (parts === null) throw new Error(`--${name} is not a colour: ${value}`);
  const [, r = '', g = '', b = ''] = parts;
  return [Number.parseInt(r, 16), Number.parseInt(g, 16), Number.parseInt(b, 16)];
}

/** WCAG 2.2, relative luminance and contrast ratio. */
function luminance(color: Rgb): number {
  const [r, g, b] = color.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * (r ?? 0) + 0.7152 * (g ?? 0) + 0.0722 * (b ?? 0);
}

function contrast(a: Rgb, b: Rgb): number {
  const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

function over(theme: Theme, layer: string, base: Rgb): Rgb {
  const parts = /^rgba\((\d+), (\d+), (\d+), ([\d.]+)\)$/.exec(theme.get(layer) ?? '');
  if (parts === null) throw new Error(`--${layer} is not a layer`);
  const [, r, g, b, alpha] = parts.map(Number);
  const mix = (value: number | undefined, below: number): number =>
    (value ?? 0) * (alpha ?? 0) + below * (1 - (alpha ?? 0));
  return [mix(r, base[0]), mix(g, base[1]), mix(b, base[2])];
}

const tones = ['desktop', 'm0', 'm1', 'm2', 'm3', 'm4', 'm5', 'agent', 'reserved', 'foreign', 'other'];

describe.each([
  ['light', light],
  ['dark', dark],
] as const)('colours, %s', (_name, theme) => {
  it('has a colour for every tone that the page gives', () => {
    for (const tone of tones) expect(css).toContain(`.tone-${tone} {`);
  });

  it.each(tones)('a label on %s is readable (WCAG AA, 4.5), hatched or not', (tone) => {
    const ink = rgb(theme, 'on-tone');
    expect(contrast(ink, rgb(theme, tone))).toBeGreaterThanOrEqual(4.5);
    expect(contrast(ink, over(theme, 'hatch', rgb(theme, tone)))).toBeGreaterThanOrEqual(4.5);
  });

  it.each(['ink', 'mute', 'ok', 'warn', 'bad'])('text in %s is readable on cards, page and boxes', (name) => {
    for (const ground of ['card', 'bg']) {
      expect(contrast(rgb(theme, name), rgb(theme, ground)), ground).toBeGreaterThanOrEqual(4.5);
    }
  });

  it('controls and marks stand out from their ground (3)', () => {
    for (const name of ['control-line', 'focus', 'm1', 'ok', 'mute']) {
      expect(contrast(rgb(theme, name), rgb(theme, 'card')), name).toBeGreaterThanOrEqual(3);
    }
    for (const tone of tones)
      expect(contrast(rgb(theme, tone), rgb(theme, 'empty')), tone).toBeGreaterThanOrEqual(3);
  });
});
