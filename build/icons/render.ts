/** One drawing, one picture a state and size: pure but for the renderer, which is WebAssembly. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { initWasm, Resvg } from '@resvg/resvg-wasm';
import type { TrayIcon } from '../../shared/tray-icon.ts';

const DRAWING = fileURLToPath(new URL('tray.svg', import.meta.url));

/** Groups of the drawing that a state shows. The critical one is an octagon of its own, without the card. */
const SHOWN: Readonly<Record<TrayIcon, readonly string[]>> = {
  fine: ['card', 'fine'],
  threatened: ['card', 'threatened'],
  critical: ['critical'],
  asleep: ['card', 'asleep'],
  stale: ['card', 'stale'],
};

export interface Raster {
  readonly width: number;
  readonly height: number;
  /** RGBA, a byte each, with premultiplied alpha. */
  readonly pixels: Uint8Array;
  readonly png: Uint8Array;
}

let ready: Promise<void> | null = null;

/** The renderer is one WebAssembly module a process. */
function prepared(): Promise<void> {
  ready ??= readFile(fileURLToPath(import.meta.resolve('@resvg/resvg-wasm/index_bg.wasm'))).then((module) =>
    initWasm(module),
  );
  return ready;
}

/** Throws when the drawing is none. */
export async function renderSvg(svg: string, sizePx: number): Promise<Raster> {
  await prepared();
  const image = new Resvg(svg, { fitTo: { mode: 'width', value: sizePx } }).render();
  return { width: image.width, height: image.height, pixels: image.pixels, png: image.asPng() };
}

export async function trayDrawing(icon: TrayIcon): Promise<string> {
  return showOnly(await readFile(DRAWING, 'utf8'), SHOWN[icon]);
}

/** The drawing without the groups that are not named. Groups do not nest in it. */
export function showOnly(drawing: string, groups: readonly string[]): string {
  return drawing.replaceAll(/<g id="([^"]+)">[\s\S]*?<\/g>/g, (group, id: string) =>
    groups.includes(id) ? group : '',
  );
}
