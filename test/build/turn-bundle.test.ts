import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleTurn } from '../../build/package/turn-bundle.ts';
import { isFresh } from '../../build/setup/fresh.mjs';

const root = resolve(import.meta.dirname, '../..');
const node = join(root, 'node_modules/node/bin/node');
let folder = '';
let bundle = '';

beforeAll(async () => {
  // As deep as the real one, so that it finds the sources beside it.
  mkdirSync(join(root, 'out'), { recursive: true });
  folder = mkdtempSync(join(root, 'out/turn-test-'));
  bundle = await bundleTurn(root, folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function turn(file: string, command: readonly string[], before: readonly string[] = []) {
  const gates = mkdtempSync(join(tmpdir(), 'landlord-turn-'));
  const env = { ...process.env, VRAM_LANDLORD_GATE_DIR: gates, LANDLORD_TURN: '' };
  const args = [...before, file, 'turn', '--backend', 'http://127.0.0.1:9', '--', ...command];
  try {
    return spawnSync(node, args, { env, encoding: 'utf8' });
  } finally {
    rmSync(gates, { recursive: true, force: true });
  }
}

describe('`landlord turn` as one file', () => {
  it('takes the lane and becomes the command, as the sources do', () => {
    const script =
      'echo "$LANDLORD_TURN"; ls "$VRAM_LANDLORD_GATE_DIR"; flock -n "$VRAM_LANDLORD_GATE_DIR/127.0.0.1_9.lock" true; echo $?';
    for (const file of [bundle, join(root, 'electron/cli.ts')]) {
      const ran = turn(file, ['sh', '-c', script]);
      const [name = '', ...rest] = ran.stdout.trim().split('\n');
      expect(name, ran.stderr).not.toBe('');
      expect(rest).toContain('127.0.0.1_9.lock');
      expect(rest).toContain('127.0.0.1_9.json');
      // flock(1) finds it taken, by the shell it was called from.
      expect(rest.at(-1)).toBe('1');
    }
  });

  it('loads nothing that it does not need', () => {
    const seen = join(folder, 'loaded.txt');
    const hook = join(folder, 'hook.cjs');
    writeFileSync(
      hook,
      `const execve = process.execve;
      process.execve = (...args) => {
        require('node:fs').writeFileSync(${JSON.stringify(seen)}, process.moduleLoadList.join('\\n'));
        execve.apply(process, args);
      };`,
    );
    expect(turn(bundle, ['true'], ['--require', hook]).status).toBe(0);
    const loaded = readFileSync(seen, 'utf8').split('\n');
    expect(loaded).toContain('NativeModule fs');
    for (const heavy of ['crypto', 'child_process', 'net', 'stream', 'internal/fs/promises', 'tty'])
      expect(loaded).not.toContain(`NativeModule ${heavy}`);
  });

  it('runs the sources where one of them has changed, or where it lies elsewhere than it was made for', () => {
    const text = readFileSync(bundle, 'utf8');
    const bodyAt = text.indexOf('\n}\n') + 3;
    const marked = `${text.slice(0, bodyAt)}process.exit(99);\n${text.slice(bodyAt)}`;
    const main = join(root, 'electron/cli/main.ts');
    const changed = marked.replace(new RegExp(`(\\["${main}",)(\\d+)`), '$11$2');
    expect(changed).not.toBe(marked);
    try {
      writeFileSync(bundle, marked);
      expect(turn(bundle, ['true']).status).toBe(99);
      writeFileSync(bundle, changed);
      expect(turn(bundle, ['sh', '-c', 'exit 7']).status).toBe(7);
      const elsewhere = join(folder, '../turn-elsewhere.cjs');
      writeFileSync(elsewhere, marked.replace('"../../electron', '"../electron'));
      expect(turn(elsewhere, ['sh', '-c', 'exit 7']).status).toBe(7);
      rmSync(elsewhere);
    } finally {
      writeFileSync(bundle, text);
    }
  });

  it('is known to be of the sources that lie here, or not', () => {
    expect(isFresh(bundle)).toBe(true);
    const list = join(folder, 'sources.json');
    const text = readFileSync(list, 'utf8');
    try {
      expect(text).toContain(relative('/', join(root, 'electron/core/gate/acquire.ts')));
      writeFileSync(list, text.replace(/"sizeBytes": \d+/, '"sizeBytes": 1'));
      expect(isFresh(bundle)).toBe(false);
    } finally {
      writeFileSync(list, text);
    }
  });
});
