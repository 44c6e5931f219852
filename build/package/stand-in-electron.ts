/**
 * A folder that stands for Electron's runtime where that can't be had: enough of its layout to be packed,
 * and a program that says what it is. The program carries a fuse wire, so that the fuses are really set
 * and can be read back.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the fuses are found by in Electron's program (electron/docs/tutorial/fuses.md), then version, length and eight fuses. */
const FUSE_WIRE = Buffer.concat([
  Buffer.from('dL7pKGdnNz796PbbjQWNKmHXBZaB9tsX'),
  Buffer.from([1, 8]),
  // As Electron ships them: run as Node on, cookies plain, NODE_OPTIONS and --inspect on, any app folder.
  Buffer.from('10110010'),
]);

const FILES: Readonly<Record<string, string>> = {
  LICENSE: 'The stand-in has no licence of its own.\n',
  'LICENSES.chromium.html': '<!doctype html><title>Licences</title>\n',
  'chrome-sandbox': '',
  chrome_crashpad_handler: '',
  'icudtl.dat': '',
  'resources.pak': '',
  'locales/en-US.pak': '',
  'locales/de.pak': '',
  'resources/default_app.asar': '',
};

export function writeStandInElectron(folder: string, version: string): void {
  for (const [name, text] of Object.entries({ ...FILES, version })) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const program = join(folder, 'electron');
  writeFileSync(
    program,
    Buffer.concat([
      Buffer.from(
        '#!/bin/sh\necho "This package was made without Electron: it is for checks alone." >&2\nexit 69\n',
      ),
      FUSE_WIRE,
    ]),
  );
  chmodSync(program, 0o755);
}
