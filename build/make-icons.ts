/**
 * Renders the tray's icons and the app's into out/icons. They are not committed: the drawing is.
 *
 *   tray/fine.png          16 px, with @1.25x, @1.5x and @2x beside it, as Electron looks for them
 *   tray/fine-22.png       22 px, the size of most Linux panels
 *   tray/fine-panel.png    32 px: a Linux panel scales one picture to its own size, and down looks better
 *   app/256x256.png        as electron-builder looks for them
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TRAY_ICONS } from '../shared/tray-icon.ts';
import { renderSvg, trayDrawing } from './icons/render.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const APP_SIZES = [16, 32, 48, 64, 128, 256, 512] as const;

/** File name endings and their sizes in pixels. */
const TRAY_FILES: Readonly<Record<string, number>> = {
  '': 16,
  '@1.25x': 20,
  '@1.5x': 24,
  '@2x': 32,
  '-22': 22,
  '-panel': 32,
};

/** Resolves with the number of files written. */
export async function makeIcons(outDir: string): Promise<number> {
  await mkdir(join(outDir, 'tray'), { recursive: true });
  await mkdir(join(outDir, 'app'), { recursive: true });
  let written = 0;
  for (const icon of TRAY_ICONS) {
    const drawing = await trayDrawing(icon);
    for (const [ending, sizePx] of Object.entries(TRAY_FILES)) {
      const { png } = await renderSvg(drawing, sizePx);
      await writeFile(join(outDir, 'tray', `${icon}${ending}.png`), png);
      written += 1;
    }
  }
  const app = await readFile(join(root, 'renderer/public/icon.svg'), 'utf8');
  for (const sizePx of APP_SIZES) {
    const { png } = await renderSvg(app, sizePx);
    await writeFile(join(outDir, 'app', `${sizePx}x${sizePx}.png`), png);
    written += 1;
  }
  return written;
}

if (import.meta.main) {
  const written = await makeIcons(join(root, 'out/icons'));
  process.stdout.write(`${written} icons in out/icons\n`);
}
