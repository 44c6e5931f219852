import { describe, expect, it } from 'vitest';
import { type Raster, renderSvg, showOnly, trayDrawing } from '../../../build/icons/render.ts';
import { TRAY_ICONS } from '../../../shared/tray-icon.ts';

const SIZES = [16, 20, 22, 24, 32] as const;
/** White, GNOME's and KDE's light and dark panels, black. */
const PANELS = ['#ffffff', '#eff0f1', '#31363b', '#1d1d1d', '#000000'];

type Rgb = readonly [number, number, number];

function rgbOf(hex: string): Rgb {
  const part = (at: number): number => Number.parseInt(hex.slice(at, at + 2), 16);
  return [part(1), part(3), part(5)];
}

/** WCAG 2.2 relative luminance of what lies on the panel. */
function luminances(raster: Raster, panel: Rgb): number[] {
  const found: number[] = [];
  for (let at = 0; at < raster.pixels.length; at += 4) {
    const alpha = (raster.pixels[at + 3] ?? 0) / 255;
    const channel = (offset: 0 | 1 | 2): number => {
      const value = ((raster.pixels[at + offset] ?? 0) + panel[offset] * (1 - alpha)) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    };
    found.push(0.2126 * channel(0) + 0.7152 * channel(1) + 0.0722 * channel(2));
  }
  return found;
}

function contrast(a: number, b: number): number {
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

describe('icons: every state can be read on every panel', () => {
  for (const panel of PANELS) {
    it(`stands out on ${panel}`, async () => {
      const [around = 0] = luminances(
        { width: 1, height: 1, pixels: new Uint8Array(4), png: new Uint8Array() },
        rgbOf(panel),
      );
      for (const icon of TRAY_ICONS) {
        for (const size of SIZES) {
          const seen = luminances(await renderSvg(await trayDrawing(icon), size), rgbOf(panel));
          const strong = seen.filter((luminance) => contrast(luminance, around) >= 3).length;
          expect(strong / seen.length, `${icon} at ${size} px`).toBeGreaterThan(0.15);
        }
      }
    });
  }

  it('tells the states apart without colour, at 16 px', async () => {
    const seen = new Map<string, number[]>();
    for (const icon of TRAY_ICONS) {
      const raster = await renderSvg(await trayDrawing(icon), 16);
      seen.set(icon, luminances(raster, rgbOf('#31363b')));
    }
    for (const a of TRAY_ICONS) {
      for (const b of TRAY_ICONS) {
        if (a >= b) continue;
        const differing = (seen.get(a) ?? []).filter(
          (luminance, at) => contrast(luminance, seen.get(b)?.[at] ?? 0) >= 2,
        ).length;
        // An eighth of the picture: a shape, not a speck.
        expect(differing, `${a} and ${b}`).toBeGreaterThan(256 / 8);
      }
    }
  });

  it('gives each size exactly, as a PNG', async () => {
    for (const size of SIZES) {
      const raster = await renderSvg(await trayDrawing('fine'), size);
      expect([raster.width, raster.height]).toEqual([size, size]);
      expect([...raster.png.slice(0, 4)]).toEqual([0x89, 0x50, 0x4e, 0x47]);
    }
  });
});

describe('icons: one drawing', () => {
  it('shows only the groups that are named', () => {
    expect(showOnly('<svg><g id="a"><x/></g><g id="b"><y/></g></svg>', ['b'])).toBe(
      '<svg><g id="b"><y/></g></svg>',
    );
  });
});
